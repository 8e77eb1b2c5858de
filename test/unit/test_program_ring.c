/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The recorder's end of a BPF ring, over a file laid out as the kernel lays out such a ring: a page
 * with the consumer's position, one with the producer's, the data; here the data is mapped once
 * more behind itself by hand, as the kernel does it (ringbuf_map_mmap_user()).
 */
#include "recorder/program_ring.h"

#include <errno.h>
#include <linux/bpf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#define RING_BYTES 4096

struct fake_ring {
	struct program_ring ring;
	char *memory; /* [producer][data][data] */
	uint64_t consumer;
	size_t page;
	int fd;
};

static int setup(void **state)
{
	struct fake_ring *fake = calloc(1, sizeof(*fake));

	assert_non_null(fake);
	fake->page = (size_t)getpagesize();
	fake->fd = memfd_create("ring", 0);
	assert_true(fake->fd >= 0);
	assert_int_equal(ftruncate(fake->fd, (off_t)(fake->page + RING_BYTES)), 0);
	fake->memory = mmap(NULL, fake->page + 2L * RING_BYTES, PROT_NONE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(fake->memory, MAP_FAILED);
	assert_ptr_not_equal(mmap(fake->memory, fake->page + RING_BYTES, PROT_READ | PROT_WRITE,
				  MAP_SHARED | MAP_FIXED, fake->fd, 0),
			     MAP_FAILED);
	assert_ptr_not_equal(mmap(fake->memory + fake->page + RING_BYTES, RING_BYTES,
				  PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fake->fd,
				  (off_t)fake->page),
			     MAP_FAILED);
	fake->ring = (struct program_ring){
		.consumer = &fake->consumer,
		.producer = (const uint64_t *)fake->memory,
		.data = fake->memory + fake->page,
		.size_bytes = RING_BYTES,
	};
	*state = fake;
	return 0;
}

static int teardown(void **state)
{
	struct fake_ring *fake = *state;

	munmap(fake->memory, fake->page + 2L * RING_BYTES);
	close(fake->fd);
	free(fake);
	return 0;
}

static uint64_t *producer(struct fake_ring *fake)
{
	return (uint64_t *)fake->memory;
}

/* Reserves a record of @bytes as the kernel does, its bytes all @fill. Returns its position. */
static uint64_t reserve(struct fake_ring *fake, uint32_t bytes, char fill)
{
	uint64_t at = *producer(fake);
	char *header = fake->memory + fake->page + at % RING_BYTES;
	uint32_t len = bytes | BPF_RINGBUF_BUSY_BIT;

	memcpy(header, &len, sizeof(len));
	memset(header + BPF_RINGBUF_HDR_SZ, fill, bytes);
	*producer(fake) = at + (bytes + BPF_RINGBUF_HDR_SZ + 7) / 8 * 8;
	return at;
}

static void settle(struct fake_ring *fake, uint64_t at, uint32_t discard)
{
	uint32_t *header = (void *)(fake->memory + fake->page + at % RING_BYTES);

	*header = (*header & ~BPF_RINGBUF_BUSY_BIT) | discard;
}

static uint64_t submit(struct fake_ring *fake, uint32_t bytes, char fill)
{
	uint64_t at = reserve(fake, bytes, fill);

	settle(fake, at, 0);
	return at;
}

static const char *next(struct fake_ring *fake, bool *busy)
{
	*busy = false;
	return (const char *)program_ring_next(&fake->ring, program_ring_end(&fake->ring), busy);
}

static void assert_next(struct fake_ring *fake, uint32_t bytes, char fill)
{
	bool busy;
	const char *record = next(fake, &busy);

	assert_non_null(record);
	assert_false(busy);
	for (uint32_t i = 0; i < bytes; i++)
		assert_int_equal(record[i], fill);
}

static void assert_none(struct fake_ring *fake, bool expect_busy)
{
	bool busy;

	assert_null(next(fake, &busy));
	assert_int_equal(busy, expect_busy);
}

static void an_empty_ring_has_no_record(void **state)
{
	assert_none(*state, false);
}

static void records_come_in_order(void **state)
{
	struct fake_ring *fake = *state;

	submit(fake, 40, 'a');
	submit(fake, 41, 'b'); /* takes what 48 takes */
	submit(fake, 8, 'c');
	assert_next(fake, 40, 'a');
	assert_next(fake, 41, 'b');
	assert_next(fake, 8, 'c');
	assert_none(fake, false);
}

static void a_busy_record_stops_and_is_read_later(void **state)
{
	struct fake_ring *fake = *state;
	uint64_t busy;

	submit(fake, 16, 'a');
	busy = reserve(fake, 24, 'b');
	submit(fake, 16, 'c');
	assert_next(fake, 16, 'a');
	assert_none(fake, true);
	assert_none(fake, true);
	settle(fake, busy, 0);
	assert_next(fake, 24, 'b');
	assert_next(fake, 16, 'c');
	assert_none(fake, false);
}

static void discarded_records_are_skipped(void **state)
{
	struct fake_ring *fake = *state;

	settle(fake, reserve(fake, 24, 'x'), BPF_RINGBUF_DISCARD_BIT);
	submit(fake, 16, 'a');
	settle(fake, reserve(fake, 100, 'x'), BPF_RINGBUF_DISCARD_BIT);
	settle(fake, reserve(fake, 8, 'x'), BPF_RINGBUF_DISCARD_BIT);
	submit(fake, 16, 'b');
	settle(fake, reserve(fake, 8, 'x'), BPF_RINGBUF_DISCARD_BIT);
	assert_next(fake, 16, 'a');
	assert_next(fake, 16, 'b');
	assert_none(fake, false);
	assert_int_equal(fake->ring.at, *producer(fake));
}

/* Busy when it is looked at, discarded in the end. */
static void a_busy_record_may_be_discarded(void **state)
{
	struct fake_ring *fake = *state;
	uint64_t busy = reserve(fake, 24, 'x');

	submit(fake, 16, 'a');
	assert_none(fake, true);
	settle(fake, busy, BPF_RINGBUF_DISCARD_BIT);
	assert_next(fake, 16, 'a');
}

static void what_comes_behind_the_end_is_left_for_later(void **state)
{
	struct fake_ring *fake = *state;
	uint64_t end;
	bool busy = false;

	submit(fake, 16, 'a');
	end = program_ring_end(&fake->ring);
	submit(fake, 16, 'b');
	assert_non_null(program_ring_next(&fake->ring, end, &busy));
	assert_null(program_ring_next(&fake->ring, end, &busy));
	assert_false(busy);
	assert_next(fake, 16, 'b');
}

static void space_is_given_back_when_consumed(void **state)
{
	struct fake_ring *fake = *state;

	submit(fake, 16, 'a');
	submit(fake, 16, 'b');
	assert_next(fake, 16, 'a');
	assert_int_equal(fake->consumer, 0);
	program_ring_consume(&fake->ring);
	assert_int_equal(fake->consumer, 24);
	assert_next(fake, 16, 'b');
	program_ring_consume(&fake->ring);
	assert_int_equal(fake->consumer, 48);
}

/* A record across the ring's end is whole through the second mapping. */
static void records_wrap_around(void **state)
{
	struct fake_ring *fake = *state;
	size_t nr_across = 0;

	for (int i = 0; i < 1000; i++) {
		uint32_t bytes = 200 + (uint32_t)(i * 37 % 500);
		uint64_t at = submit(fake, bytes, (char)i);

		nr_across += at % RING_BYTES + BPF_RINGBUF_HDR_SZ + bytes > RING_BYTES;
		assert_next(fake, bytes, (char)i);
		program_ring_consume(&fake->ring);
		assert_int_equal(fake->consumer, *producer(fake));
	}
	assert_true(nr_across > 50);
}

/* The header is the last thing before the ring's end: its record begins at the start. */
static void a_header_at_the_end_of_the_ring(void **state)
{
	struct fake_ring *fake = *state;

	submit(fake, RING_BYTES - 2 * BPF_RINGBUF_HDR_SZ, 'a');
	assert_next(fake, RING_BYTES - 2 * BPF_RINGBUF_HDR_SZ, 'a');
	program_ring_consume(&fake->ring);
	assert_int_equal(submit(fake, 16, 'b') % RING_BYTES, RING_BYTES - BPF_RINGBUF_HDR_SZ);
	assert_next(fake, 16, 'b');
}

static void a_ring_may_be_full(void **state)
{
	struct fake_ring *fake = *state;

	for (int i = 0; i < RING_BYTES / 64; i++)
		submit(fake, 64 - BPF_RINGBUF_HDR_SZ, (char)i);
	for (int i = 0; i < RING_BYTES / 64; i++)
		assert_next(fake, 64 - BPF_RINGBUF_HDR_SZ, (char)i);
	assert_none(fake, false);
}

static void what_cannot_be_mapped_is_an_error(void **state)
{
	struct program_ring ring;
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	assert_true(program_ring_init(&ring, fds[0], RING_BYTES) < 0);
	program_ring_deinit(&ring); /* no-op */
	assert_int_equal(program_ring_init(&ring, -1, RING_BYTES), -EBADF);
	program_ring_deinit(&ring);
	close(fds[0]);
	close(fds[1]);
}

/* program_ring_init() maps the pages where the kernel has them. */
static void the_pages_are_mapped_in_their_order(void **state)
{
	size_t page = (size_t)getpagesize();
	int fd = memfd_create("ring", 0);
	struct program_ring ring;
	uint64_t end = 24, consumed = 0;
	uint32_t len = 16;
	bool busy = false;

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)(2 * page + 2L * RING_BYTES)), 0);
	assert_int_equal(pwrite(fd, &end, sizeof(end), (off_t)page), sizeof(end));
	assert_int_equal(pwrite(fd, &len, sizeof(len), (off_t)(2 * page)), sizeof(len));
	assert_int_equal(program_ring_init(&ring, fd, RING_BYTES), 0);
	assert_int_equal(program_ring_end(&ring), end);
	assert_non_null(program_ring_next(&ring, end, &busy));
	program_ring_consume(&ring);
	assert_int_equal(pread(fd, &consumed, sizeof(consumed), 0), sizeof(consumed));
	assert_int_equal(consumed, end);
	program_ring_deinit(&ring);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(an_empty_ring_has_no_record, setup, teardown),
		cmocka_unit_test_setup_teardown(records_come_in_order, setup, teardown),
		cmocka_unit_test_setup_teardown(a_busy_record_stops_and_is_read_later, setup,
						teardown),
		cmocka_unit_test_setup_teardown(discarded_records_are_skipped, setup, teardown),
		cmocka_unit_test_setup_teardown(a_busy_record_may_be_discarded, setup, teardown),
		cmocka_unit_test_setup_teardown(what_comes_behind_the_end_is_left_for_later, setup,
						teardown),
		cmocka_unit_test_setup_teardown(space_is_given_back_when_consumed, setup, teardown),
		cmocka_unit_test_setup_teardown(records_wrap_around, setup, teardown),
		cmocka_unit_test_setup_teardown(a_header_at_the_end_of_the_ring, setup, teardown),
		cmocka_unit_test_setup_teardown(a_ring_may_be_full, setup, teardown),
		cmocka_unit_test(what_cannot_be_mapped_is_an_error),
		cmocka_unit_test(the_pages_are_mapped_in_their_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
