/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads a BPF ring from a file with the layout of the BPF array: positions, data, slack. The test
 * plays the BPF programs and writes as ring.bpf.h does.
 */
#include "recorder/programs/bpf_ring.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#define RING_BYTES  4096
#define SECRET	    0x123456789abcdef1ULL
#define HEADER	    ((uint32_t)sizeof(struct perf_event_header))
#define SEALED	    (BPF_RING_SEAL_BYTES + HEADER) /* what a record takes besides its bytes */
#define RECORD_TYPE PERF_RECORD_SAMPLE

struct fake_ring {
	struct bpf_ring ring;
	int fd;
};

static int setup(void **state)
{
	struct fake_ring *fake = calloc(1, sizeof(*fake));

	assert_non_null(fake);
	fake->fd = memfd_create("ring", 0);
	assert_true(fake->fd >= 0);
	assert_int_equal(ftruncate(fake->fd, (off_t)bpf_ring_value_bytes(RING_BYTES)), 0);
	assert_int_equal(bpf_ring_init(&fake->ring, fake->fd, RING_BYTES, SECRET), 0);
	*state = fake;
	return 0;
}

static int teardown(void **state)
{
	struct fake_ring *fake = *state;

	bpf_ring_deinit(&fake->ring);
	close(fake->fd);
	free(fake);
	return 0;
}

static char *place(struct fake_ring *fake, uint64_t at)
{
	return (char *)fake->ring.data + at % RING_BYTES;
}

static void seal(struct fake_ring *fake, uint64_t at)
{
	uint64_t word = at ^ SECRET;

	memcpy(place(fake, at), &word, sizeof(word));
}

/* Reserves a record of the given type, with @bytes of @fill after its header, not sealed. */
static uint64_t reserve(struct fake_ring *fake, uint32_t type, uint32_t bytes, int fill)
{
	uint64_t at = fake->ring.control->head;
	struct perf_event_header header = {.type = type, .size = (uint16_t)(HEADER + bytes)};
	char *to = place(fake, at) + BPF_RING_SEAL_BYTES;

	memcpy(to, &header, HEADER);
	memset(to + HEADER, fill, bytes);
	fake->ring.control->head = at + SEALED + bytes;
	return at;
}

static uint64_t submit(struct fake_ring *fake, uint32_t bytes, int fill)
{
	uint64_t at = reserve(fake, RECORD_TYPE, bytes, fill);

	seal(fake, at);
	return at;
}

static const struct perf_event_header *next(struct fake_ring *fake, bool *busy)
{
	*busy = false;
	return bpf_ring_next(&fake->ring, bpf_ring_end(&fake->ring), busy);
}

static void assert_next(struct fake_ring *fake, uint32_t bytes, int fill)
{
	bool busy;
	const struct perf_event_header *record = next(fake, &busy);

	assert_non_null(record);
	assert_false(busy);
	assert_int_equal(record->size, HEADER + bytes);
	for (uint32_t i = 0; i < bytes; i++)
		assert_int_equal(((const char *)record)[HEADER + i], (char)fill);
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
	submit(fake, 0, 'b');
	submit(fake, 8, 'c');
	assert_next(fake, 40, 'a');
	assert_next(fake, 0, 'b');
	assert_next(fake, 8, 'c');
	assert_none(fake, false);
}

static void a_busy_record_stops_and_is_read_later(void **state)
{
	struct fake_ring *fake = *state;
	uint64_t busy;

	submit(fake, 16, 'a');
	busy = reserve(fake, RECORD_TYPE, 24, 'b');
	submit(fake, 16, 'c');
	assert_next(fake, 16, 'a');
	assert_none(fake, true);
	assert_none(fake, true);
	seal(fake, busy);
	assert_next(fake, 24, 'b');
	assert_next(fake, 16, 'c');
	assert_none(fake, false);
}

static void fillers_are_skipped(void **state)
{
	struct fake_ring *fake = *state;

	seal(fake, reserve(fake, BPF_RING_FILLER, 24, 'x'));
	submit(fake, 16, 'a');
	seal(fake, reserve(fake, BPF_RING_FILLER, 1000, 'x'));
	seal(fake, reserve(fake, BPF_RING_FILLER, 0, 'x'));
	submit(fake, 16, 'b');
	seal(fake, reserve(fake, BPF_RING_FILLER, 8, 'x'));
	assert_next(fake, 16, 'a');
	assert_next(fake, 16, 'b');
	assert_none(fake, false);
	assert_int_equal(fake->ring.at, fake->ring.control->head);
}

/*
 * A record that turns out shorter gives room back. A reader that has seen the previous end finds
 * room there to which no program is writing yet.
 */
static void room_may_be_given_back(void **state)
{
	struct fake_ring *fake = *state;
	uint64_t at = reserve(fake, RECORD_TYPE, 16, 'a'), end;
	bool busy = false;

	fake->ring.control->head += 500;
	end = bpf_ring_end(&fake->ring);
	fake->ring.control->head -= 500;
	seal(fake, at);
	assert_non_null(bpf_ring_next(&fake->ring, end, &busy));
	assert_false(busy);
	assert_null(bpf_ring_next(&fake->ring, end, &busy));
	assert_true(busy);
	assert_none(fake, false);
	submit(fake, 16, 'b');
	assert_next(fake, 16, 'b');
}

static void what_comes_behind_the_end_is_left_for_later(void **state)
{
	struct fake_ring *fake = *state;
	uint64_t end;
	bool busy = false;

	submit(fake, 16, 'a');
	end = bpf_ring_end(&fake->ring);
	submit(fake, 16, 'b');
	assert_non_null(bpf_ring_next(&fake->ring, end, &busy));
	assert_null(bpf_ring_next(&fake->ring, end, &busy));
	assert_false(busy);
	assert_next(fake, 16, 'b');
}

static void space_is_given_back_when_consumed(void **state)
{
	struct fake_ring *fake = *state;

	submit(fake, 16, 'a');
	submit(fake, 16, 'b');
	assert_next(fake, 16, 'a');
	assert_int_equal(fake->ring.control->tail, 0);
	bpf_ring_consume(&fake->ring);
	assert_int_equal(fake->ring.control->tail, SEALED + 16);
	assert_next(fake, 16, 'b');
	bpf_ring_consume(&fake->ring);
	assert_int_equal(fake->ring.control->tail, 2 * (SEALED + 16));
}

/*
 * What goes beyond the end is in the slack. The next record begins where this one would have ended
 * in the ring.
 */
static void records_go_on_behind_the_end(void **state)
{
	struct fake_ring *fake = *state;
	size_t nr_across = 0;

	for (int i = 0; i < 1000; i++) {
		uint32_t bytes = 8 * (25 + (uint32_t)(i * 37 % 60));
		uint64_t at = submit(fake, bytes, i);

		nr_across += at % RING_BYTES + SEALED + bytes > RING_BYTES;
		assert_next(fake, bytes, i);
		bpf_ring_consume(&fake->ring);
		assert_int_equal(fake->ring.control->tail, fake->ring.control->head);
	}
	assert_true(nr_across > 50);
}

static void the_largest_record_may_begin_at_the_end(void **state)
{
	struct fake_ring *fake = *state;

	submit(fake, RING_BYTES - SEALED - 8, 'a');
	assert_next(fake, RING_BYTES - SEALED - 8, 'a');
	bpf_ring_consume(&fake->ring);
	assert_int_equal(submit(fake, 65528 - HEADER, 'b') % RING_BYTES, RING_BYTES - 8);
	assert_next(fake, 65528 - HEADER, 'b');
}

static void a_ring_may_be_full(void **state)
{
	struct fake_ring *fake = *state;

	for (int i = 0; i < RING_BYTES / 64; i++)
		submit(fake, 64 - SEALED, i);
	for (int i = 0; i < RING_BYTES / 64; i++)
		assert_next(fake, 64 - SEALED, i);
	assert_none(fake, false);
}

/* Laps later, the old bytes where a record is being written are never a valid seal. */
static void old_bytes_are_no_seal(void **state)
{
	struct fake_ring *fake = *state;

	for (int i = 0; i < 3 * RING_BYTES / 64; i++) {
		uint64_t later = fake->ring.control->head + RING_BYTES, word = later;

		submit(fake, 64 - SEALED, i);
		assert_next(fake, 64 - SEALED, i);
		bpf_ring_consume(&fake->ring);
		/* The target guesses the position, not the secret. */
		memcpy(place(fake, later), &word, sizeof(word));
	}
	reserve(fake, RECORD_TYPE, 48, 'x');
	assert_none(fake, true);
}

static void what_cannot_be_mapped_is_an_error(void **state)
{
	struct bpf_ring ring;
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	assert_true(bpf_ring_init(&ring, fds[0], RING_BYTES, SECRET) < 0);
	bpf_ring_deinit(&ring); /* calling it again does nothing */
	assert_int_equal(bpf_ring_init(&ring, -1, RING_BYTES, SECRET), -EBADF);
	bpf_ring_deinit(&ring);
	close(fds[0]);
	close(fds[1]);
}

#define RING_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		RING_TEST(an_empty_ring_has_no_record),
		RING_TEST(records_come_in_order),
		RING_TEST(a_busy_record_stops_and_is_read_later),
		RING_TEST(fillers_are_skipped),
		RING_TEST(room_may_be_given_back),
		RING_TEST(what_comes_behind_the_end_is_left_for_later),
		RING_TEST(space_is_given_back_when_consumed),
		RING_TEST(records_go_on_behind_the_end),
		RING_TEST(the_largest_record_may_begin_at_the_end),
		RING_TEST(a_ring_may_be_full),
		RING_TEST(old_bytes_are_no_seal),
		cmocka_unit_test(what_cannot_be_mapped_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
