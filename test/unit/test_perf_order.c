/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Records of several rings, put in order while more come in, against a plain sort. */
#include "parser/perf_chunks.h"
#include "parser/perf_order.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#define NR_ROUNDS 200

/* A chunk to hold, with one record of 16 bytes in it. */
static struct perf_record read_record(struct perf_source *source, struct perf_chunks *chunks)
{
	const struct perf_event_header header = {.type = PERF_RECORD_SAMPLE, .size = 16};
	uint8_t bytes[16] = {0};
	struct perf_record record;
	int fd = memfd_create("record", MFD_CLOEXEC);

	memcpy(bytes, &header, sizeof(header));
	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, sizeof(bytes)), sizeof(bytes));
	perf_source_init(source, fd, "record");
	perf_chunks_init(chunks, source, sizeof(bytes));
	assert_int_equal(perf_chunks_next(chunks, &record), 1);
	return record;
}

/* Each round brings up to 300 records later than those of two rounds before; many have one time. */
static void in_order_whatever_comes(void **state)
{
	struct perf_source source;
	struct perf_chunks chunks;
	struct perf_record record = read_record(&source, &chunks);
	struct perf_order order = {0};
	struct perf_queued entry = {.record = record}, popped;
	uint64_t nr_pushed = 0, nr_popped = 0, last_ns = 0, last_offset = 0, random = 1;

	for (uint64_t round = 1; round <= NR_ROUNDS; round++) {
		random = random * 6364136223846793005u + 1442695040888963407u;
		for (uint64_t nr = (random >> 33) % 300; nr > 0; nr--) {
			random = random * 6364136223846793005u + 1442695040888963407u;
			entry.time_ns = round * 100 + (random >> 33) % 150;
			entry.record.offset = nr_pushed++;
			assert_int_equal(perf_order_push(&order, &entry), 0);
		}
		if (round == NR_ROUNDS)
			perf_order_finish(&order);
		else
			perf_order_finish_round(&order);
		while (perf_order_pop(&order, &popped)) {
			assert_true(popped.time_ns >= last_ns);
			assert_true(popped.time_ns > last_ns || nr_popped == 0 ||
				    popped.record.offset > last_offset);
			last_ns = popped.time_ns;
			last_offset = popped.record.offset;
			nr_popped++;
			perf_chunk_release(popped.record.chunk);
		}
		assert_true(order.nr < 1200);
	}
	assert_int_equal(nr_popped, nr_pushed);
	assert_int_equal(order.nr, 0);
	perf_order_deinit(&order);
	perf_chunks_deinit(&chunks);
	close(source.fd);
	perf_source_deinit(&source);
}

/* What is left in it is released with it (the sanitizers would tell). */
static void given_up_half_way(void **state)
{
	struct perf_source source;
	struct perf_chunks chunks;
	struct perf_queued entry = {.record = read_record(&source, &chunks)}, popped;
	struct perf_order order = {0};

	for (uint64_t i = 0; i < 3000; i++) {
		entry.time_ns = 1 + i * 7919 % 3001;
		assert_int_equal(perf_order_push(&order, &entry), 0);
	}
	perf_order_finish(&order);
	for (uint64_t i = 0; i < 1000; i++) {
		assert_true(perf_order_pop(&order, &popped));
		perf_chunk_release(popped.record.chunk);
	}
	perf_order_deinit(&order);
	perf_chunks_deinit(&chunks);
	close(source.fd);
	perf_source_deinit(&source);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(in_order_whatever_comes),
		cmocka_unit_test(given_up_half_way),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
