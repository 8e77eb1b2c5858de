/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sorts records of several rings while more come in, and compares with a plain sort. */
#include "parser/records/perf_events.h"
#include "parser/perfdata/perf_order.h"

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
#define MAX_ROUND 300 /* records */

/* The position of a sample's time, as @events have it. */
struct sample {
	struct perf_event_header header;
	uint64_t time_ns;
};

/* A file of samples, read by its chunks. */
struct recording {
	struct perf_source source;
	struct perf_chunks chunks;
	struct perf_events events;
	struct perf_order order;
	size_t round_sizes[NR_ROUNDS];
};

static uint64_t next_random(uint64_t *random)
{
	*random = *random * 6364136223846793005u + 1442695040888963407u;
	return *random >> 33;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/*
 * Each round has up to 300 records, all later than those of two rounds before. Many have the same
 * time. Of four rounds, one is sorted, one consists of two sorted rings, and two are unsorted.
 */
static size_t make_samples(struct recording *recording, struct sample *samples)
{
	uint64_t random = 1;
	size_t nr = 0;

	for (uint64_t round = 0; round < NR_ROUNDS; round++) {
		size_t size = recording->round_sizes[round] = next_random(&random) % MAX_ROUND;

		for (size_t i = 0; i < size; i++, nr++) {
			uint64_t after = next_random(&random) % 150;

			if (round % 4 == 0)
				after = smaller(i, 149);
			else if (round % 4 == 1)
				after = smaller(i % (size / 2 + 1), 149);
			samples[nr] = (struct sample){
				.header = {.type = PERF_RECORD_SAMPLE, .size = sizeof(*samples)},
				.time_ns = (round + 1) * 100 + after,
			};
		}
	}
	return nr;
}

static int open_recording(void **state)
{
	const struct perf_event_attr attr = {.size = sizeof(attr), .sample_type = PERF_SAMPLE_TIME};
	struct recording *recording = calloc(1, sizeof(*recording));
	struct sample *samples = calloc((size_t)NR_ROUNDS * MAX_ROUND, sizeof(*samples));
	int fd = memfd_create("records", MFD_CLOEXEC);

	assert_true(recording && samples && fd >= 0);
	size_t nr_bytes = make_samples(recording, samples) * sizeof(*samples);
	assert_int_equal(write(fd, samples, nr_bytes), nr_bytes);
	free(samples);
	assert_int_equal(
		perf_events_add(&recording->events, (const uint8_t *)&attr, sizeof(attr), NULL, 0),
		0);
	perf_source_init(&recording->source, fd, "records");
	perf_chunks_init(&recording->chunks, &recording->source, nr_bytes);
	recording->order.events = &recording->events;
	*state = recording;
	return 0;
}

static int close_recording(void **state)
{
	struct recording *recording = *state;

	perf_order_deinit(&recording->order);
	perf_chunks_deinit(&recording->chunks);
	perf_events_deinit(&recording->events);
	close(recording->source.fd);
	perf_source_deinit(&recording->source);
	free(recording);
	return 0;
}

/* Queues the next record of the file. */
static void push_next(struct recording *recording)
{
	struct perf_queued entry = {.event = recording->events.events[0]};

	assert_int_equal(perf_chunks_next(&recording->chunks, &entry.record), 1);
	entry.time_ns = perf_event_record_time(entry.event, &entry.record);
	assert_int_equal(perf_order_push(&recording->order, &entry), 0);
}

static void in_order_whatever_comes(void **state)
{
	struct recording *recording = *state;
	struct perf_order *order = &recording->order;
	const struct perf_queued *popped;
	uint64_t nr_pushed = 0, nr_popped = 0, last_ns = 0, last_offset = 0;

	for (uint64_t round = 0; round < NR_ROUNDS; round++) {
		for (size_t i = 0; i < recording->round_sizes[round]; i++, nr_pushed++)
			push_next(recording);
		if (round + 1 == NR_ROUNDS)
			perf_order_finish(order);
		else
			perf_order_finish_round(order);
		while ((popped = perf_order_pop(order))) {
			const struct perf_record *record = &popped->record;
			struct sample sample;

			memcpy(&sample, record->bytes, sizeof(sample));
			assert_int_equal(popped->time_ns, sample.time_ns);
			assert_ptr_equal(popped->event, recording->events.events[0]);
			assert_int_equal(record->header.size, sizeof(sample));
			assert_int_equal(record->offset, popped->sequence * sizeof(sample));
			assert_true(popped->time_ns >= last_ns);
			assert_true(popped->time_ns > last_ns || nr_popped == 0 ||
				    record->offset > last_offset);
			last_ns = popped->time_ns;
			last_offset = record->offset;
			nr_popped++;
			perf_chunk_release(record->chunk);
		}
		assert_true(order->nr < 1200);
	}
	assert_int_equal(nr_popped, nr_pushed);
	assert_int_equal(order->nr, 0);
}

/* The remaining records are released with it (the sanitizers would report leaks). */
static void given_up_half_way(void **state)
{
	struct recording *recording = *state;

	for (size_t i = 0; i < 3000; i++)
		push_next(recording);
	perf_order_finish(&recording->order);
	for (size_t i = 0; i < 1000; i++) {
		const struct perf_queued *popped = perf_order_pop(&recording->order);

		assert_non_null(popped);
		perf_chunk_release(popped->record.chunk);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(in_order_whatever_comes, open_recording,
						close_recording),
		cmocka_unit_test_setup_teardown(given_up_half_way, open_recording, close_recording),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
