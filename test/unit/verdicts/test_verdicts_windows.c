/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Verdicts of recordings in windows: the first 20 ms of each second. Each block is in the sample
 * that outlives its window.
 */
#include "parser/windows/followed_blocks.h"
#include "parser/windows/observed_time.h"
#include "test/support/judged_program.h"

#include <math.h>

#define WINDOW_NS (SECOND / 50)
#define MS	  (SECOND / 1000)

static struct observed_time windows;
static struct followed_block followed[MAX];

static const struct followed_block *followed_of(const void *context, const struct heap_block *block)
{
	return &followed[block - held];
}

static uint64_t even_ns(uint64_t i)
{
	return WINDOW_NS;
}

/* Eight windows of 80 ms follow eight of 20 ms. */
static uint64_t uneven_ns(uint64_t i)
{
	return i / 8 % 2 ? 4 * WINDOW_NS : WINDOW_NS;
}

static int begin_in_windows(void **state, uint64_t (*length_ns)(uint64_t i))
{
	for (uint64_t i = 0; i < 100; i++) {
		if (observed_time_open(&windows, START + i * SECOND))
			return -1;
		observed_time_close(&windows, START + i * SECOND + length_ns(i), 0);
	}
	if (begin(state))
		return -1;
	input.observed = &windows;
	input.followed = followed_of;
	return 0;
}

static int begin_windows(void **state)
{
	return begin_in_windows(state, even_ns);
}

static int begin_uneven_windows(void **state)
{
	return begin_in_windows(state, uneven_ns);
}

static int end_windows(void **state)
{
	observed_time_deinit(&windows);
	return end(state);
}

/* A block that is there at the end, untouched. */
static void add_stayer(uint32_t stack_id, pid_t pid, uint64_t time_ns)
{
	const struct observed_window *window =
		&windows.windows[observed_time_nr_before(&windows, time_ns) - 1];

	followed[input.nr_held] = (struct followed_block){
		.nr_looks = 3,
		.nr_untouched = 2,
		.closed_ns = window->close_ns,
		.window_ns = window->observed_ns,
		.seen_ns = input.end_ns,
	};
	add(stack_id, pid, 1000, (double)(time_ns - START) / (double)SECOND, FOREVER);
}

/* A block that outlived its window; what is at its address later may be another one. */
static void add_unproven(uint32_t stack_id, pid_t pid, uint64_t time_ns)
{
	add_stayer(stack_id, pid, time_ns);
	followed[input.nr_held - 1].nr_untouched = 0;
}

/* A block that leakrec looked at only twice. */
static void add_unknown(uint32_t stack_id, pid_t pid, uint64_t time_ns)
{
	add_stayer(stack_id, pid, time_ns);
	followed[input.nr_held - 1].nr_looks = 2;
	followed[input.nr_held - 1].nr_untouched = 1;
}

/* One block comes in each window, 50 a second: half of those that are known stay. */
static void blocks_with_few_looks_are_like_the_others(void **state)
{
	void (*const add_one_of[])(uint32_t, pid_t, uint64_t) = {add_stayer, add_unproven,
								 add_unknown, add_unknown};

	for (uint64_t i = 0; i < 100; i++)
		add_one_of[i % 4](1, 1, START + i * SECOND + WINDOW_NS / 2);
	assert_int_equal(verdicts_init(&verdicts, &input), 0);
	assert_int_equal(verdicts.sites[0].verdict, VERDICT_GROWTH);
	assert_in_range(verdicts.sites[0].rate.blocks_per_s, 23, 27);
}

/* Windows are longer while the program is slower: it leaks 200 blocks a second, or 50. */
static void slow_times_count_no_more_than_others(void **state)
{
	for (uint64_t i = 0; i < 96; i++)
		for (uint64_t k = 0; k < 4; k++)
			add_stayer(1, 1, START + i * SECOND + uneven_ns(i) / 8 * (2 * k + 1));
	assert_int_equal(verdicts_init(&verdicts, &input), 0);
	assert_int_equal(verdicts.sites[0].verdict, VERDICT_GROWTH);
	assert_in_range(verdicts.sites[0].rate.blocks_per_s, 110, 140);
}

static void blocks_without_bytes_have_a_rate(void **state)
{
	for (uint64_t i = 0; i < 100; i++) {
		add_stayer(1, 1, START + i * SECOND + WINDOW_NS / 2);
		held[input.nr_held - 1].size_bytes = 0;
	}
	assert_int_equal(verdicts_init(&verdicts, &input), 0);
	assert_in_range(verdicts.sites[0].rate.blocks_per_s, 45, 55);
	assert_true(verdicts.sites[0].rate.bytes_error == 0);
}

/*
 * Where the others load something, one leaks 8 blocks a second: one in each sixth window. Its
 * unproven blocks say nothing.
 */
static void the_rate_of_one_process_is_not_that_of_the_sample(void **state)
{
	for (uint64_t i = 0; i < 1000; i++)
		add_stayer(1, 2 + (pid_t)(i % 5), START + 1 + i * (WINDOW_NS / 2000));
	for (uint64_t i = 0; i < 100; i++) {
		if (i % 6 == 0)
			add_stayer(1, 1, START + i * SECOND + WINDOW_NS / 2);
		add_unproven(1, 1, START + i * SECOND + WINDOW_NS / 2);
	}
	assert_int_equal(verdicts_init(&verdicts, &input), 0);
	assert_int_equal(verdicts.sites[0].verdict, VERDICT_GROWTH);
	assert_in_range(verdicts.sites[0].rate.blocks_per_s, 7, 10);
	assert_in_range(verdicts.sites[0].rate.bytes_per_s, 7000, 10000);
}

/* Process 2 begins in second 10. */
static struct process_life life_of(const void *context, pid_t pid, uint64_t time_ns)
{
	return (struct process_life){.start_ns = pid == 2 ? START + 10 * SECOND : 0};
}

/* Process 1 loads six blocks. The others have ended, and their addresses are in use again. */
static void unproven_blocks_of_a_new_process_are_no_growth(void **state)
{
	input.process_life = life_of;
	for (uint64_t i = 0; i < 100; i++) {
		if (i < 6)
			add_stayer(1, 1, START + i * SECOND + WINDOW_NS / 2);
		for (size_t k = 0; k < 4; k++)
			add_unproven(1, i >= 10 && k % 2 ? 2 : 1,
				     START + i * SECOND + WINDOW_NS / 2);
	}
	add_stayer(2, 1, START + 99 * SECOND + WINDOW_NS / 2);
	assert_int_equal(verdicts_init(&verdicts, &input), 0);
	assert_int_equal(verdict_of(1)->verdict, VERDICT_STARTUP);
}

/*
 * Blocks of stack 1 that a window sees freed: they live for 1 us; with delays, one of twenty lives
 * for 5 ms.
 */
static void add_freed(uint64_t open_ns, bool delays)
{
	for (uint64_t i = 0; i < 40; i++)
		add(1, 1, 1000, (double)(open_ns + i * 100000 - START) / (double)SECOND,
		    delays && i % 20 == 0 ? 5e-3 : 1e-6);
}

/*
 * Threads wait for their CPU, so the lifetimes of freed blocks do not tell that these are short. A
 * few of them are older.
 */
static void what_is_in_flight_is_no_growth(void **state)
{
	for (uint64_t i = 0; i < 100; i++) {
		add_freed(START + i * SECOND, true);
		/* Each second one is of a call that returned after the close. */
		if (i % 33 == 32)
			add_stayer(1, 1, START + i * SECOND + WINDOW_NS / 4);
		else
			add_stayer(1, 1, START + i * SECOND + WINDOW_NS - (i % 2 ? 50000 * i : 0));
	}
	assert_int_equal(verdicts_init(&verdicts, &input), 0);
	assert_int_equal(verdicts.nr_sites, 1);
	assert_true(verdicts.sites[0].verdict == VERDICT_NOT_YET ||
		    verdicts.sites[0].verdict == VERDICT_UNCLEAR);
}

/* A look finds that the block of stack 1, which was in flight at the close, is gone. */
static void add_gone(uint64_t close_ns)
{
	const struct site_block block = {1, 1000, close_ns};
	struct site_stats *sites = (struct site_stats *)input.sites;

	assert_int_equal(site_stats_enter(sites, &block), 0);
	assert_int_equal(site_stats_outlive(sites, &block, close_ns), 0);
	site_stats_follow(sites, &block, close_ns);
	assert_int_equal(site_stats_leave_late(sites, &block, close_ns, close_ns + SECOND), 0);
}

/* One of 50 blocks stays, in each window one; nine are in flight, of which one seems to stay. */
static void what_is_in_flight_hides_no_leak(void **state)
{
	for (uint64_t i = 0; i < 100; i++) {
		add_freed(START + i * SECOND, true);
		add_stayer(1, 1, START + i * SECOND + WINDOW_NS / 100 * (i * 37 % 100));
		for (size_t k = 0; k < 8; k++)
			add_gone(START + i * SECOND + WINDOW_NS);
		add_stayer(1, 1, START + i * SECOND + WINDOW_NS);
	}
	assert_int_equal(verdicts_init(&verdicts, &input), 0);
	assert_int_equal(verdicts.sites[0].verdict, VERDICT_GROWTH);
	assert_in_range(verdicts.sites[0].rate.blocks_per_s, 42, 58);
	assert_in_range((double)verdicts.sites[0].suspect_blocks * verdicts.sites[0].stands_for,
			4500, 5500);
	assert_in_range(verdicts.sites[0].stays * 1e4, 150, 250);
}

/* All ends that were seen are of blocks in flight. They do not tell how long the others live. */
static void ends_in_flight_hide_no_leak(void **state)
{
	for (uint64_t i = 0; i < 100; i++) {
		add_stayer(1, 1, START + i * SECOND + WINDOW_NS / 100 * (i * 37 % 100));
		add_gone(START + i * SECOND + WINDOW_NS);
		add_stayer(1, 1, START + i * SECOND + WINDOW_NS);
	}
	assert_int_equal(verdicts_init(&verdicts, &input), 0);
	assert_int_equal(verdicts.sites[0].verdict, VERDICT_GROWTH);
	assert_true(verdicts.sites[0].median_s < 0);
	assert_true(verdicts.sites[0].stays < 0);
	assert_true(verdicts.blocks[0].ordinary < 0);
}

/* main(), a function that leaks, and one of each stack. */
static int functions_of(void *stacks, uint32_t stack_id, uint64_t *ret, size_t max, size_t *ret_nr)
{
	ret[0] = 1;
	ret[1] = 2;
	ret[2] = 100 + stack_id;
	*ret_nr = 3;
	return 0;
}

/* The block is in the sample; so many others of its stack and window are not. */
static void add_sampled(uint32_t stack_id, uint64_t time_ns, size_t nr_others)
{
	const struct site_block block = {stack_id, 1000, time_ns};
	struct site_stats *sites = (struct site_stats *)input.sites;
	uint64_t closed_ns;

	add_stayer(stack_id, 1, time_ns);
	closed_ns = followed[input.nr_held - 1].closed_ns;
	assert_int_equal(site_stats_outlive(sites, &block, closed_ns), 0);
	site_stats_follow(sites, &block, closed_ns);
	for (size_t i = 0; i < nr_others; i++) {
		assert_int_equal(site_stats_enter(sites, &block), 0);
		assert_int_equal(site_stats_outlive(sites, &block, closed_ns), 0);
		assert_int_equal(site_stats_lose_sight(sites, &block, closed_ns), 0);
	}
}

/*
 * Blocks of stack 1 that live for 6 ms, as long as most windows: four windows of five are 5 ms
 * long. At the end of each, five or six are in flight, and another stack's leak takes their
 * addresses.
 */
static void add_requests(uint64_t open_ns, uint64_t window_ns)
{
	for (uint64_t at_ns = 0; at_ns + 6 * MS <= window_ns; at_ns += MS)
		add(1, 1, 1000, (double)(open_ns + at_ns - START) / (double)SECOND, 6e-3);
	for (uint64_t age_ns = 0; age_ns < 6 * MS && age_ns < window_ns; age_ns += MS)
		add_sampled(1, open_ns + window_ns - age_ns, 0);
}

static uint64_t mostly_short_ns(uint64_t i)
{
	return i % 5 ? 5 * MS : WINDOW_NS;
}

static int begin_mostly_short_windows(void **state)
{
	return begin_in_windows(state, mostly_short_ns);
}

static void what_lives_as_long_as_windows_is_no_growth(void **state)
{
	double stand_for = 0;

	for (uint64_t i = 0; i < 100; i++)
		add_requests(START + i * SECOND, mostly_short_ns(i));
	assert_int_equal(verdicts_init(&verdicts, &input), 0);
	assert_int_equal(verdicts.sites[0].verdict, VERDICT_NOT_YET);
	for (size_t i = 0; i < verdicts.nr_blocks; i++)
		stand_for += verdicts.blocks[i].stands_for;
	assert_in_range(stand_for, 5, 6);
}

/* Of the same blocks ten a second stay. */
static void what_lives_as_long_as_windows_hides_no_leak(void **state)
{
	for (uint64_t i = 0; i < 100; i++) {
		add_requests(START + i * SECOND, mostly_short_ns(i));
		if (i % 5 == 0)
			add_sampled(1, START + i * SECOND + WINDOW_NS / 100 * (i * 37 % 100), 0);
	}
	assert_int_equal(verdicts_init(&verdicts, &input), 0);
	assert_int_equal(verdicts.sites[0].verdict, VERDICT_GROWTH);
}

/* No window shows an end, and ages are even. But the program has not so much memory. */
static void what_exceeds_the_memory_is_no_growth(void **state)
{
	for (uint64_t i = 0; i < 100; i++) {
		add_gone(START + i * SECOND + WINDOW_NS);
		for (size_t k = 0; k < 10; k++)
			add_sampled(1, START + i * SECOND + k * WINDOW_NS / 10 + MS, 0);
	}
	input.memory_bytes = 100000000;
	assert_int_equal(verdicts_init(&verdicts, &input), 0);
	assert_int_equal(verdicts.sites[0].verdict, VERDICT_GROWTH);
	verdicts_deinit(&verdicts);
	input.memory_bytes = 10000000;
	assert_int_equal(verdicts_init(&verdicts, &input), 0);
	assert_int_equal(verdicts.sites[0].verdict, VERDICT_NOT_YET);
}

/* One block stays in each window, 50 a second; of half of them only two looks tell. */
static void what_ends_before_a_look_is_not_like_the_others(void **state)
{
	for (uint64_t i = 0; i < 100; i++) {
		for (size_t k = 0; k < 4; k++)
			add_gone(START + i * SECOND + WINDOW_NS);
		add_sampled(1, START + i * SECOND + WINDOW_NS / 100 * (i * 37 % 100), 0);
		if (i / 2 % 2) {
			followed[input.nr_held - 1].nr_looks = 2;
			followed[input.nr_held - 1].nr_untouched = 1;
		}
	}
	assert_int_equal(verdicts_init(&verdicts, &input), 0);
	assert_int_equal(verdicts.sites[0].verdict, VERDICT_GROWTH);
	assert_in_range(verdicts.sites[0].rate.blocks_per_s, 44, 56);
}

/* A window lasts until the end: its blocks are firm. That is no reason to list them first. */
static void the_larger_leak_comes_first(void **state)
{
	for (uint64_t i = 0; i < 100; i++) {
		add_stayer(1, 1, START + i * SECOND + WINDOW_NS / 2);
		if (i % 4 == 0 || i == 99)
			add_stayer(2, 1, START + i * SECOND + WINDOW_NS / 2);
	}
	for (uint64_t i = 0; i < 20; i++) {
		add_stayer(2, 1, START + 99 * SECOND + WINDOW_NS * (51 + i) / 100);
		followed[input.nr_held - 1].is_certain = true;
	}
	assert_int_equal(verdicts_init(&verdicts, &input), 0);
	assert_int_equal(verdict_of(2)->verdict, VERDICT_GROWTH);
	assert_true(verdict_of(2)->firm_blocks > 0);
	assert_int_equal(verdicts.sites[0].site->stack_id, 1);
}

/*
 * Of 4,000 blocks that live for up to 60 us, 60 are in use when their windows close. Looks prove
 * their ends a second later: as many as the root of all. Another one stays in each second window.
 */
static void late_proofs_hide_no_leak(void **state)
{
	for (uint64_t i = 0; i < 100; i++) {
		uint64_t open_ns = START + i * SECOND;

		for (uint64_t k = 0; k < 40; k++)
			add(1, 1, 1000, (double)(open_ns + k * 100000 - START) / (double)SECOND,
			    1e-6 * pow(60, (double)(k * 100 + i) / 4000));
		if (i % 5 < 3)
			add_gone(open_ns + WINDOW_NS);
		if (i % 2)
			add_sampled(1, open_ns + WINDOW_NS / 100 * (i * 37 % 100), 0);
	}
	assert_int_equal(verdicts_init(&verdicts, &input), 0);
	assert_int_equal(verdicts.sites[0].verdict, VERDICT_GROWTH);
	assert_in_range(verdicts.sites[0].rate.blocks_per_s, 20, 30);
}

/*
 * Three blocks do not tell that some were in flight, those of 100 stacks do. A tenth are older. Of
 * each second stack a quarter is in the sample.
 */
static void what_is_in_flight_of_a_cause_is_no_amount_of_its_stacks(void **state)
{
	double stand_for = 0;

	input.functions_of = functions_of;
	for (uint32_t i = 0; i < 100; i++) {
		for (uint32_t k = 0; k < 3; k++) {
			uint32_t stack_id = 1 + (i + 33 * k) % 100;

			add_sampled(stack_id,
				    START + i * SECOND +
					    WINDOW_NS / 4 * (k == 0 && i % 10 < 3 ? 1 : 3),
				    stack_id % 2 ? 3 : 0);
		}
	}
	assert_int_equal(verdicts_init(&verdicts, &input), 0);
	assert_int_equal(verdicts.nr_causes, 1);
	assert_int_equal(verdicts.causes[0].verdict.verdict, VERDICT_GROWTH);
	assert_int_equal(verdicts.causes[0].verdict.suspect_blocks, 30);
	for (size_t i = 0; i < verdicts.nr_blocks; i++)
		stand_for += verdicts.blocks[i].stands_for;
	/*
	 * Each of 30 stands for 50 windows' time, and for those that came in the last 8.4 of 20 ms;
	 * 20 of them for four in the sample.
	 */
	assert_in_range(stand_for, 7400, 8000);
}

/* One window of 50 s, then short ones. */
static void begin_with_a_long_window(void)
{
	observed_time_deinit(&windows);
	assert_int_equal(observed_time_open(&windows, START), 0);
	observed_time_close(&windows, START + 50 * SECOND, 0);
	for (uint64_t i = 50; i < 100; i++) {
		assert_int_equal(observed_time_open(&windows, START + i * SECOND), 0);
		observed_time_close(&windows, START + i * SECOND + WINDOW_NS, 0);
	}
}

/* A quiet program's window stays open for long. It does not make the others longer. */
static void a_quiet_time_hides_no_leak(void **state)
{
	begin_with_a_long_window();
	for (uint64_t i = 50; i < 100; i++) {
		add_freed(START + i * SECOND, false);
		add_stayer(1, 1, START + i * SECOND + WINDOW_NS / 100 * (i * 37 % 100));
	}
	assert_int_equal(verdicts_init(&verdicts, &input), 0);
	assert_int_equal(verdicts.sites[0].verdict, VERDICT_GROWTH);
}

/* In only one window a block was young at the close. What is at its address may be another's. */
static void one_block_in_flight_is_not_overdue(void **state)
{
	for (uint64_t i = 0; i < 100; i++) {
		add_freed(START + i * SECOND, false);
		if (i == 30)
			add_stayer(1, 1, START + i * SECOND + WINDOW_NS - WINDOW_NS / 20);
	}
	assert_int_equal(verdicts_init(&verdicts, &input), 0);
	assert_int_equal(verdicts.sites[0].verdict, VERDICT_UNCLEAR);
}

/* It was there for 20 s before its window closed. */
static void one_block_that_was_not_in_flight_is_overdue(void **state)
{
	begin_with_a_long_window();
	for (uint64_t i = 0; i < 50; i++) {
		add_freed(START + i * SECOND, false);
		if (i == 30)
			add_stayer(1, 1, START + i * SECOND + SECOND / 2);
	}
	assert_int_equal(verdicts_init(&verdicts, &input), 0);
	assert_int_equal(verdicts.sites[0].verdict, VERDICT_OVERDUE);
}

/* It was older than a thread waits, but others of its stack live longer: it was in use. */
static void one_block_in_use_is_not_overdue(void **state)
{
	begin_with_a_long_window();
	for (uint64_t i = 0; i < 2000; i++)
		add(1, 1, 1000, (double)i / 50, 0.5);
	add_stayer(1, 1, START + 50 * SECOND - SECOND * 15 / 100);
	assert_int_equal(verdicts_init(&verdicts, &input), 0);
	assert_int_equal(verdicts.sites[0].verdict, VERDICT_UNCLEAR);
}

/* All of a quiet program's calls fit into one window. */
static void growth_in_one_long_window_is_growth(void **state)
{
	observed_time_deinit(&windows);
	assert_int_equal(observed_time_open(&windows, START), 0);
	observed_time_close(&windows, input.end_ns, 0);
	for (uint64_t i = 0; i < 100; i++)
		add_stayer(1, 1, START + i * SECOND);
	assert_int_equal(verdicts_init(&verdicts, &input), 0);
	assert_int_equal(verdicts.sites[0].verdict, VERDICT_GROWTH);
}

/* The second window lasts until the end. Only the first one's blocks are looked at. */
static void growth_in_an_open_window_is_growth(void **state)
{
	observed_time_deinit(&windows);
	assert_int_equal(observed_time_open(&windows, START), 0);
	observed_time_close(&windows, START + WINDOW_NS, 0);
	assert_int_equal(observed_time_open(&windows, START + SECOND / 2), 0);
	add_freed(START, false);
	for (uint64_t i = 1; i < 20; i++)
		add_stayer(1, 1, START + i * WINDOW_NS / 20);
	add_unproven(1, 1, START + WINDOW_NS / 2);
	for (uint64_t i = 1; i < 100; i++) {
		add_freed(START + i * SECOND, false);
		followed[input.nr_held] = (struct followed_block){.is_certain = true};
		add(1, 1, 1000, (double)i, FOREVER);
	}
	assert_int_equal(verdicts_init(&verdicts, &input), 0);
	assert_int_equal(verdicts.sites[0].verdict, VERDICT_GROWTH);
	assert_in_range(verdicts.sites[0].suspect_blocks, 110, 120);
}

#define WINDOWED(function) cmocka_unit_test_setup_teardown(function, begin_windows, end_windows)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WINDOWED(blocks_with_few_looks_are_like_the_others),
		cmocka_unit_test_setup_teardown(slow_times_count_no_more_than_others,
						begin_uneven_windows, end_windows),
		WINDOWED(blocks_without_bytes_have_a_rate),
		WINDOWED(the_rate_of_one_process_is_not_that_of_the_sample),
		WINDOWED(unproven_blocks_of_a_new_process_are_no_growth),
		WINDOWED(what_is_in_flight_is_no_growth),
		WINDOWED(what_is_in_flight_hides_no_leak),
		WINDOWED(ends_in_flight_hide_no_leak),
		cmocka_unit_test_setup_teardown(what_lives_as_long_as_windows_is_no_growth,
						begin_mostly_short_windows, end_windows),
		cmocka_unit_test_setup_teardown(what_lives_as_long_as_windows_hides_no_leak,
						begin_mostly_short_windows, end_windows),
		WINDOWED(what_exceeds_the_memory_is_no_growth),
		WINDOWED(what_ends_before_a_look_is_not_like_the_others),
		WINDOWED(the_larger_leak_comes_first),
		WINDOWED(late_proofs_hide_no_leak),
		WINDOWED(what_is_in_flight_of_a_cause_is_no_amount_of_its_stacks),
		WINDOWED(a_quiet_time_hides_no_leak),
		WINDOWED(one_block_in_flight_is_not_overdue),
		WINDOWED(one_block_that_was_not_in_flight_is_overdue),
		WINDOWED(one_block_in_use_is_not_overdue),
		WINDOWED(growth_in_one_long_window_is_growth),
		WINDOWED(growth_in_an_open_window_is_growth),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
