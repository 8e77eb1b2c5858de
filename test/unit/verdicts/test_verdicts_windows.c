/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Verdicts of recordings in windows: 20 ms of each second. Each block is in the sample. */
#include "parser/windows/followed_blocks.h"
#include "parser/windows/observed_time.h"
#include "test/support/judged_program.h"

#define WINDOW_NS (SECOND / 50)

static struct observed_time windows;
static struct followed_block followed[MAX];

static const struct followed_block *followed_of(const void *context, const struct heap_block *block)
{
	return &followed[block - held];
}

static int begin_windows(void **state)
{
	for (uint64_t i = 0; i < 100; i++) {
		if (observed_time_open(&windows, START + i * SECOND))
			return -1;
		observed_time_close(&windows, START + i * SECOND + WINDOW_NS, 0);
	}
	if (begin(state))
		return -1;
	input.observed = &windows;
	input.followed = followed_of;
	return 0;
}

static int end_windows(void **state)
{
	observed_time_deinit(&windows);
	return end(state);
}

/* A block that is there at the end, untouched. */
static void add_stayer(uint32_t stack_id, pid_t pid, uint64_t time_ns)
{
	followed[input.nr_held] = (struct followed_block){
		.nr_looks = 2,
		.nr_untouched = 2,
		.closed_ns = time_ns - time_ns % SECOND + WINDOW_NS,
		.seen_ns = input.end_ns,
	};
	add(stack_id, pid, 1000, (double)(time_ns - START) / (double)SECOND, FOREVER);
}

/* Where the others load something, one leaks 8 blocks a second: one in each sixth window. */
static void the_rate_of_one_process_is_not_that_of_the_sample(void **state)
{
	for (uint64_t i = 0; i < 1000; i++)
		add_stayer(1, 2 + (pid_t)(i % 5), START + 1 + i * (WINDOW_NS / 2000));
	for (uint64_t i = 0; i < 100; i += 6)
		add_stayer(1, 1, START + i * SECOND + WINDOW_NS / 2);
	assert_int_equal(verdicts_init(&verdicts, &input), 0);
	assert_int_equal(verdicts.sites[0].verdict, VERDICT_GROWTH);
	assert_in_range(verdicts.sites[0].rate.blocks_per_s, 7, 10);
	assert_in_range(verdicts.sites[0].rate.bytes_per_s, 7000, 10000);
}

#define WINDOWED(function) cmocka_unit_test_setup_teardown(function, begin_windows, end_windows)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WINDOWED(the_rate_of_one_process_is_not_that_of_the_sample),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
