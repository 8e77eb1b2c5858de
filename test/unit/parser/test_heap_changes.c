/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The changes that an observer is shown: each one once, in an order that adds up. */
#include "parser/analysis/peak.h"
#include "test/support/heap_feed.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

static struct feed feed;
static char shown[1024];

static void show(const char *line)
{
	assert_true(strlen(shown) + strlen(line) < sizeof(shown));
	memcpy(shown + strlen(shown), line, strlen(line) + 1);
}

static void note_change(void *context, const struct heap_change *change)
{
	char line[64];

	assert_false(change->block.provisional);
	snprintf(line, sizeof(line), "%c%llx/%llu:%s ", change->enters ? '+' : '-',
		 (unsigned long long)change->block.address,
		 (unsigned long long)change->block.size_bytes, change->op.schema->function);
	show(line);
}

/* Only the releases, each with the stack of its call. */
static void note_release(void *context, const struct heap_change *change)
{
	char line[64];

	if (!change->release)
		return;
	snprintf(line, sizeof(line), "%c%llx:%u ", change->enters ? '+' : '-',
		 (unsigned long long)change->block.address, change->release->stack_id);
	show(line);
}

static int setup(void **state)
{
	const struct heap_observer observer = {.on_change = note_change};

	shown[0] = '\0';
	feed_init(&feed, &observer);
	return 0;
}

static int teardown(void **state)
{
	feed_deinit(&feed);
	return 0;
}

static void plain_calls(void **state)
{
	feed_malloc(&feed, 10, 0xa0);
	feed_realloc(&feed, 0xa0, 20, 0xb0);
	feed_free(&feed, 0xb0);
	feed_free(&feed, 0xb0);
	feed_free(&feed, 0);
	assert_string_equal(shown, "+a0/10:malloc -a0/10:realloc +b0/20:realloc -b0/20:free ");
}

static void failed_realloc_comes_back(void **state)
{
	feed_malloc(&feed, 10, 0xa0);
	feed_realloc(&feed, 0xa0, 20, 0);
	assert_string_equal(shown, "+a0/10:malloc -a0/10:realloc +a0/10:realloc ");
}

static void still_held_leaves_first(void **state)
{
	feed_malloc(&feed, 10, 0xa0);
	feed_malloc(&feed, 20, 0xa0);
	assert_string_equal(shown, "+a0/10:malloc -a0/10:malloc +a0/20:malloc ");
}

static void inner_block_is_not_shown_apart(void **state)
{
	feed_entry(&feed, "realloc", 0, 20, 0);
	feed.caller = FEED_IN_LIBC;
	feed_malloc(&feed, 20, 0xa0);
	assert_string_equal(shown, "");
	feed.caller = FEED_PROGRAM;
	feed_return(&feed, "realloc", 0xa0);
	assert_string_equal(shown, "+a0/20:realloc ");
}

static void inner_block_that_proves_its_own_is_shown_late(void **state)
{
	feed_entry(&feed, "memalign", 64, 20, 0);
	feed.caller = FEED_IN_LIBC;
	feed_malloc(&feed, 8, 0xa0);
	feed_malloc(&feed, 9, 0xb0);
	feed_free(&feed, 0xb0);
	assert_string_equal(shown, "+b0/9:malloc -b0/9:free ");
	feed.caller = FEED_PROGRAM;
	feed_return(&feed, "memalign", 0xc00);
	assert_string_equal(shown, "+b0/9:malloc -b0/9:free +a0/8:malloc +c00/20:memalign ");
}

static void inner_block_of_a_lost_call_is_shown_at_the_end(void **state)
{
	feed_entry(&feed, "memalign", 64, 20, 0);
	feed.caller = FEED_IN_LIBC;
	feed_malloc(&feed, 8, 0xa0);
	feed_finish(&feed);
	assert_string_equal(shown, "+a0/8:malloc ");
}

static void calls_from_elsewhere_are_shown_at_once(void **state)
{
	feed_entry(&feed, "memalign", 64, 20, 0); /* its return is lost */
	feed.caller = FEED_PROGRAM + 0x50;
	feed_malloc(&feed, 8, 0xa0);
	assert_string_equal(shown, "+a0/8:malloc ");
}

static void what_a_child_does_with_its_copies_is_not_shown(void **state)
{
	feed_malloc(&feed, 10, 0xa0);
	feed_malloc(&feed, 11, 0xb0);
	feed_malloc(&feed, 12, 0xc0);
	feed_fork(&feed, 200);
	feed_as(&feed, 200, 200);
	feed_free(&feed, 0xa0);
	feed_realloc(&feed, 0xb0, 20, 0xd0);
	feed_malloc(&feed, 30, 0xc0); /* its free was missed */
	feed_as(&feed, 100, 100);
	feed_free(&feed, 0xa0);
	assert_string_equal(shown, "+a0/10:malloc +b0/11:malloc +c0/12:malloc +d0/20:realloc "
				   "+c0/30:malloc -a0/10:free ");
}

static void what_exec_takes_is_shown(void **state)
{
	feed_malloc(&feed, 10, 0xa0);
	feed_fork(&feed, 200);
	feed_as(&feed, 200, 200);
	feed_malloc(&feed, 20, 0xb0);
	feed_comm(&feed, 200, 200, true, "other");
	assert_string_equal(shown, "+a0/10:malloc +b0/20:malloc -b0/20:exec ");
	feed_comm(&feed, 100, 100, true, "other");
	assert_string_equal(shown, "+a0/10:malloc +b0/20:malloc -b0/20:exec -a0/10:exec ");
}

/* It ends when anything else happens. Held at the end is what the last processes held. */
static void what_exit_takes_is_shown_at_the_next_event(void **state)
{
	feed_malloc(&feed, 10, 0xa0);
	feed_fork(&feed, 200);
	feed_as(&feed, 200, 200);
	feed_malloc(&feed, 20, 0xb0);
	feed_exit(&feed, 200, 200);
	assert_string_equal(shown, "+a0/10:malloc +b0/20:malloc ");
	feed_as(&feed, 100, 100);
	feed_malloc(&feed, 30, 0xc0);
	assert_string_equal(shown, "+a0/10:malloc +b0/20:malloc -b0/20:exit +c0/30:malloc ");
	feed_exit(&feed, 100, 100);
	feed_finish(&feed);
	assert_string_equal(shown, "+a0/10:malloc +b0/20:malloc -b0/20:exit +c0/30:malloc ");
	assert_int_equal(feed_nr_held(&feed), 3);
}

static void what_a_vfork_child_made_stays(void **state)
{
	feed_fork(&feed, 200);
	feed_newtask(&feed, 200, CLONE_VM | CLONE_VFORK);
	feed_as(&feed, 200, 200);
	feed_malloc(&feed, 20, 0xb0);
	feed_exit(&feed, 200, 200);
	feed_as(&feed, 100, 100);
	feed_free(&feed, 0xb0);
	assert_string_equal(shown, "+b0/20:malloc -b0/20:free ");
}

static void a_reused_pid_shows_that_its_process_exited(void **state)
{
	feed_malloc(&feed, 10, 0xa0);
	feed_as(&feed, 200, 200);
	feed_fork(&feed, 100);
	assert_string_equal(shown, "+a0/10:malloc -a0/10:exit ");
}

/* Its only known thread has exited, but another one lives. */
static void what_seemed_to_exit_is_shown_again(void **state)
{
	feed_malloc(&feed, 10, 0xa0);
	feed_exit(&feed, 100, 100);
	feed_as(&feed, 100, 101);
	feed_free(&feed, 0xa0);
	assert_string_equal(shown, "+a0/10:malloc -a0/10:exit +a0/10:malloc -a0/10:free ");
}

/* A realloc() has the stack of its entry, also when its return shows that it has failed. */
static void calls_that_release_are_told_apart(void **state)
{
	const struct heap_observer observer = {.on_change = note_release};
	struct feed calls;

	feed_init(&calls, &observer);
	feed_malloc(&calls, 10, 0xa0);
	calls.stack_id = 2;
	feed_entry(&calls, "realloc", 0xa0, 20, 0);
	calls.stack_id = 3;
	feed_return(&calls, "realloc", 0);
	calls.stack_id = 4;
	feed_free(&calls, 0xa0);
	assert_string_equal(shown, "-a0:2 +a0:2 -a0:4 ");
	shown[0] = '\0';
	/* A block whose address is given again, and those that end with their process. */
	feed_malloc(&calls, 10, 0xa0);
	feed_malloc(&calls, 10, 0xa0);
	feed_comm(&calls, 100, 100, true, "other");
	feed_malloc(&calls, 10, 0xb0);
	feed_exit(&calls, 100, 100);
	feed_finish(&calls);
	assert_string_equal(shown, "");
	feed_deinit(&calls);
}

static void count_in_peak(void *context, const struct heap_change *change)
{
	peak_change(context, change);
}

/* Each child of a row holds a block when it exits. Only the living one counts at the peak. */
static void the_dead_do_not_count_at_the_peak(void **state)
{
	struct peak peak = {0};
	const struct heap_observer observer = {&peak, count_in_peak, NULL, HEAP_KIND_MEMORY};
	const struct site *site;
	struct feed row;

	feed_init(&row, &observer);
	row.stack_id = 7;
	for (pid_t child = 200; child < 220; child++) {
		feed_as(&row, 100, 100);
		feed_fork(&row, child);
		feed_as(&row, child, child);
		feed_malloc(&row, 1000 + (uint64_t)child, 0xa0);
		feed_exit(&row, child, child);
	}
	assert_int_equal(peak.peak_bytes, 1219);
	site = site_stats_find(heap_tracker_sites(row.tracker), 7);
	assert_int_equal(site->peak_blocks, 1);
	assert_int_equal(site->peak_bytes, 1219);
	assert_int_equal(site_held_blocks(site), 20);
	assert_int_equal(site_present_blocks(site), 1);
	feed_finish(&row);
	/* As at the peak, which the last child reached. */
	assert_int_equal(heap_tracker_forget_exited(row.tracker), 0);
	assert_int_equal(feed_only_held(&row)->size_bytes, 1219);
	assert_int_equal(site_held_blocks(site), 1);
	assert_int_equal(site->held_bytes, 1219);
	feed_deinit(&row);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(plain_calls),
		TEST(failed_realloc_comes_back),
		TEST(still_held_leaves_first),
		TEST(inner_block_is_not_shown_apart),
		TEST(inner_block_that_proves_its_own_is_shown_late),
		TEST(inner_block_of_a_lost_call_is_shown_at_the_end),
		TEST(calls_from_elsewhere_are_shown_at_once),
		TEST(what_a_child_does_with_its_copies_is_not_shown),
		TEST(what_exec_takes_is_shown),
		TEST(what_exit_takes_is_shown_at_the_next_event),
		TEST(what_a_vfork_child_made_stays),
		TEST(a_reused_pid_shows_that_its_process_exited),
		TEST(what_seemed_to_exit_is_shown_again),
		TEST(calls_that_release_are_told_apart),
		TEST(the_dead_do_not_count_at_the_peak),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
