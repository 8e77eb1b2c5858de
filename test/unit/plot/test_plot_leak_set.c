/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/quantity.h"
#include "common/scope.h"
#include "plot/leaks/leak_axes.h"
#include "plot/leaks/leak_label.h"
#include "plot/leaks/leak_set.h"
#include "plot/leaks/leak_title.h"
#include "plot/memory/memory_history.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define HEAD "# leaks 1\n# summary events=1000 start=10.000000000 end=70.000000000\n"

/* Returns what leak_set_init() does. */
static int try_set(const char *text, const struct size_range *range, struct leak_set *ret)
{
	char path[] = "/tmp/test_plot_leak_set.XXXXXX";
	int fd = mkstemp(path), err;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	err = leak_set_init(ret, path, range);
	unlink(path);
	return err;
}

static struct leak_set read_set(const char *text, const struct size_range *range)
{
	struct leak_set set;

	assert_int_equal(try_set(text, range, &set), 0);
	return set;
}

static const char three_sizes[] = HEAD "leak 3072 0x1 11.000000000 10 7 7 a malloc 1\n"
				       "\tmalloc+0x10  (/lib/libc.so.6)\n"
				       "\tfirst+0x1  (/x)\n"
				       "\tsecond+0x1  (/x)\n"
				       "\tthird+0x1  (/x)\n"
				       "leak 100 0x2 12.000000000 20 7 7 a malloc 2\n"
				       "leak 3072 0x3 13.000000000 30 7 8 b malloc 1\n"
				       "\tother+0x1  (/x)\n"
				       "leak ? 0x4 14.000000000 40 7 8 b malloc 3\n"
				       "leak 64 0x5 15.000000000 50 7 8 b malloc 4\n";

static void assert_label(const struct stack_label *label, const char *expected)
{
	char *text = stack_label_text(label, NULL, 0);

	assert_string_equal(text, expected);
	free(text);
}

static void leaks_are_grouped_and_ranked(void **state)
{
	struct leak_set set = read_set(three_sizes, NULL);

	assert_int_equal(set.nr_points, 4);
	assert_int_equal(set.nr_unknown_size, 1);
	assert_int_equal(set.total_bytes, 2 * 3072 + 100 + 64);
	assert_int_equal(set.nr_names, 2);
	assert_false(set.several_pids);
	assert_int_equal(set.ranked[0]->number, 1);
	assert_int_equal(set.ranked[0]->nr_leaks, 2);
	assert_true(set.ranked[0]->same_size);
	assert_label(&set.ranked[0]->label, "first <- second");
	assert_label(&set.ranked[1]->label, "");
	assert_int_equal(set.ranked[1]->number, 2);
	assert_int_equal(set.ranked[2]->number, 4);
	assert_null(set.ranked[3]);
	assert_ptr_equal(set.points[2].group, set.ranked[0]);
	leak_set_deinit(&set);
}

#define HEAD2 "# leaks 2\n# summary events=1000 start=10.000000000 end=70.000000000\n"
#define SEVEN                                                                                      \
	"frames 7 malloc seven\n"                                                                  \
	"\tmalloc+0x10  (/lib/libc.so.6)\n"                                                        \
	"\tseven+0x1  (/x)\n"                                                                      \
	"\tmain+0x1  (/x)\n"
#define LAST "frames 4294967295 ? last\n\tmalloc+0x10  (/lib/libc.so.6)\n\tlast+0x1  (/x)\n"

static void stacks_are_defined_once(void **state)
{
	static const char text[] =
		HEAD2 "process 7 a 3 6208\nprocess 8 b 1 8 end=40.000000000\n" SEVEN
		      "stack 1 growth firm 2 6144 7 malloc seven\n"
		      "periods 1 10.000000000 60.000000000\n"
		      "history 7 held_bytes=1 held_blocks=1\n" LAST
		      "history 4294967295 held_bytes=1 held_blocks=1\n"
		      "frames 0 malloc ?\n"
		      "leak 3072 0x1 11.000000000 10 7 7 7 growth seven\n"
		      "leak 64 0x2 12.000000000 20 7 7 0 unclear ?\n"
		      "leak 3072 0x3 13.000000000 30 7 7 7 growth seven\n"
		      "leak 8 0x4 14.000000000 40 8 8 0 unclear ?\n"
		      "leak 8 0x5 14.000000000 41 8 8 0 unclear ? age=2.000000000\n"
		      "leak 8 0x6 50.000000000 42 8 8 0 unclear ?\n";
	struct leak_set set = read_set(text, NULL);

	assert_int_equal(set.nr_points, 6);
	assert_int_equal(set.points[1].age_ns, 58000000000);
	assert_int_equal(set.points[3].age_ns, 26000000000);
	assert_int_equal(set.points[4].age_ns, 2000000000);
	assert_int_equal(set.points[5].age_ns, 0);
	assert_label(&set.points[0].group->label, "seven <- main");
	assert_label(&set.points[1].group->label, "");
	assert_int_equal(set.histories.nr, 2);
	assert_label(&set.histories.stacks[0].group->label, "seven <- main");
	assert_label(&set.histories.stacks[1].group->label, "last");
	leak_set_deinit(&set);
}

/* Not those with most leaks. */
static void the_largest_holders_are_ranked(void **state)
{
	static const char text[] = HEAD "leak 10 0x1 11.000000000 1 7 7 a malloc 1\n"
					"leak 10 0x2 11.000000000 2 7 7 a malloc 1\n"
					"leak 3000 0x3 11.000000000 3 7 7 a malloc 2\n"
					"leak 2980 0x4 11.000000000 4 7 7 a malloc 3\n"
					"leak 20 0x5 11.000000000 5 7 7 a malloc 3\n"
					"periods 2 10.000000000 30.000000000\n"
					"history all held_bytes=9000,6020\n"
					"history 4 held_bytes=9000,0 held_blocks=1,0\n"
					"history 1 held_bytes=20,20 held_blocks=2,2\n"
					"history 2 held_bytes=0,3000 held_blocks=0,1\n";
	struct leak_set set = read_set(text, NULL);

	assert_int_equal(set.ranked[0]->number, 3);
	assert_int_equal(set.ranked[1]->number, 2);
	assert_int_equal(set.ranked[2]->number, 1);
	assert_int_equal(set.histories.nr, 3);
	assert_int_equal(set.histories.stacks[0].stack, 2);
	assert_int_equal(set.histories.stacks[1].stack, 1);
	assert_int_equal(set.histories.stacks[2].stack, 4);
	leak_set_deinit(&set);
}

#define STACK(number, function)                                                                    \
	"frames " number " malloc " function "\n\tmalloc+0x1  (/lib/libc.so.6)\n\t" function       \
	"+0x1  (/x)\n\tworker+0x5  w.c:5  (/x)\n\tmain+0x1  (/x)\n"
#define CAUSE                                                                                      \
	"cause 2 growth firm 2 20 2 worker blocks_per_s=3 bytes_per_s=30\n"                        \
	"\tworker+0x5  w.c:5  (/x)\n\tmain+0x1  (/x)\n"
#define CAUSE_STACKS                                                                                                               \
	STACK("1", "one")                                                                                                          \
	"stack 1 growth firm 1 10 1 malloc one bytes_per_s=15 cause=2\n" STACK(                                                    \
		"2",                                                                                                               \
		"two") "stack 2 growth firm 1 10 2 malloc two cause=2\n" STACK("3",                                                \
									       "three") "stack 3 at-exit firm 1 10 2 malloc two\n" \
											"stack 4 plateau firm 1 15 3 malloc three cause=9\n"
#define CAUSE_HISTORIES                                                                            \
	"periods 2 10.000000000 30.000000000\n"                                                    \
	"history all held_bytes=15,35 held_blocks=1,3\n"                                           \
	"history 3 held_bytes=15,15 held_blocks=1,1\n"                                             \
	"history 1 held_bytes=0,10 held_blocks=0,1\n"
#define CAUSE_LEAKS                                                                                \
	"leak 10 0x1 11.000000000 1 7 7 1 growth one\n"                                            \
	"leak 10 0x2 12.000000000 2 7 7 2 growth two\n"                                            \
	"leak 10 0x3 13.000000000 3 7 7 2 at-exit two\n"                                           \
	"leak 15 0x4 14.000000000 4 7 7 3 plateau three\n"

static void stacks_of_a_cause_are_one(void **state)
{
	static const char text[] = HEAD2 CAUSE CAUSE_STACKS CAUSE_HISTORIES
		"cause-history 2 held_bytes=0,20 held_blocks=0,2\n" CAUSE_LEAKS;
	struct leak_set set = read_set(text, NULL);
	const struct stack_history *histories = set.histories.stacks;

	assert_true(set.ranked[0]->is_cause);
	assert_int_equal(set.ranked[0]->number, 2);
	assert_int_equal(set.ranked[0]->nr_stacks, 2);
	assert_int_equal(set.ranked[0]->total_bytes, 20);
	assert_label(&set.ranked[0]->label, "worker <- main");
	assert_ptr_equal(set.points[0].group, set.ranked[0]);
	assert_ptr_equal(set.points[1].group, set.ranked[0]);
	/* What a process left behind is no part of it, nor what has a cause that is not there. */
	assert_int_equal(set.ranked[1]->number, 3);
	assert_int_equal(set.ranked[2]->number, 2);
	assert_false(set.ranked[2]->is_cause);
	/* Its history replaces those of its stacks. */
	assert_int_equal(set.histories.nr, 2);
	assert_ptr_equal(histories[0].group, set.ranked[0]);
	assert_int_equal(histories[0].verdict.verdict, PLOT_GROWTH);
	assert_int_equal(histories[0].verdict.bytes_per_s, 30);
	assert_int_equal(histories[1].stack, 3);
	leak_set_deinit(&set);
}

static void assert_printed(void (*print)(FILE *out, const struct leak_set *set),
			   const struct leak_set *set, const char *expected)
{
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	print(out, set);
	assert_int_equal(fclose(out), 0);
	assert_string_equal(text, expected);
	free(text);
}

static void assert_reach(const struct leak_set *set, const char *expected)
{
	assert_printed(leak_title_print_reach, set, expected);
}

static void assert_leaks(const struct leak_set *set, const char *expected)
{
	assert_printed(leak_title_print_leaks, set, expected);
}

static void without_a_scan_the_title_says_nothing_of_one(void **state)
{
	struct leak_set set = read_set(three_sizes, NULL);

	assert_reach(&set, "");
	assert_leaks(&set, "");
	leak_set_deinit(&set);
}

/* As a scan has said; what else it says is no proof. */
static void lost_leaks_are_counted(void **state)
{
	static const char text[] =
		HEAD2 "frames 1 malloc f\n\tf+0x1  (/x)\n"
		      "leak 10 0x1 11.000000000 10 7 7 1 growth f reach=lost\n"
		      "leak 10 0x2 12.000000000 20 7 7 1 growth f age=3.000000000 reach=cycle\n"
		      "leak 10 0x3 13.000000000 30 7 7 1 growth f reach=lost-through\n"
		      "leak 10 0x4 14.000000000 40 7 7 1 growth f reach=held\n"
		      "leak 10 0x5 15.000000000 50 7 7 1 growth f reach=unknown\n"
		      "leak 10 0x6 15.000000000 60 7 7 1 burst f reach=lost,\n"
		      "leak 10 0x7 16.000000000 70 7 7 1 burst f\n";
	struct leak_set set = read_set(text, NULL);

	assert_int_equal(set.ranked[0]->nr_leaks, 7);
	assert_int_equal(set.ranked[0]->nr_lost, 3);
	assert_int_equal(set.verdicts[PLOT_GROWTH].nr_lost, 3);
	assert_int_equal(set.verdicts[PLOT_BURST].nr_lost, 0);
	assert_reach(&set, "3 proven lost, 1 still reachable, 1 not decided, 2 not scanned");
	assert_int_equal(set.points[1].age_ns, 3000000000);
	leak_set_deinit(&set);
}

static void assert_leaks_of(const char *leaks, const char *expected)
{
	_cleanup_free_ char *text = NULL;
	struct leak_set set;

	assert_true(asprintf(&text, HEAD2 "frames 1 malloc f\n\tf+0x1  (/x)\n%s", leaks) > 0);
	set = read_set(text, NULL);
	assert_leaks(&set, expected);
	leak_set_deinit(&set);
}

static void the_title_says_how_many_look_like_leaks(void **state)
{
	assert_leaks_of("leak 10 0x1 11.000000000 10 7 7 1 start-up f\n"
			"leak 10 0x2 12.000000000 20 7 7 1 unclear f reach=held\n",
			", none looks like a leak");
	assert_leaks_of("leak 10 0x1 11.000000000 10 7 7 1 start-up f reach=lost\n"
			"leak 10 0x2 12.000000000 20 7 7 1 burst f\n",
			", 1 looks like a leak");
	assert_leaks_of("leak 10 0x1 11.000000000 10 7 7 1 growth f\n"
			"leak 10 0x2 12.000000000 20 7 7 1 overdue f\n",
			", 2 look like leaks");
}

/* A program of a few milliseconds has no other verdicts. */
static void what_is_lost_is_a_leak_whatever_its_verdict(void **state)
{
	assert_leaks_of("leak 10 0x1 11.000000000 10 7 7 1 unclear f reach=lost\n"
			"leak 10 0x2 12.000000000 20 7 7 1 start-up f reach=held\n",
			"");
	assert_leaks_of("leak 10 0x1 11.000000000 10 7 7 1 unclear f reach=no-holder\n", "");
}

/* leakparse writes histories of the first causes only. */
static void a_cause_may_have_no_history(void **state)
{
	struct leak_set set = read_set(HEAD2 CAUSE CAUSE_STACKS CAUSE_HISTORIES CAUSE_LEAKS, NULL);

	assert_int_equal(set.histories.nr, 2);
	assert_int_equal(set.histories.stacks[1].stack, 1);
	leak_set_deinit(&set);
}

static void assert_legend(const struct leak_set *set, size_t nr, size_t max_chars,
			  const char *const *expected)
{
	const struct leak_group *const *legend = (const struct leak_group *const *)set->ranked;

	for (size_t i = 0; i < nr; i++) {
		char *text = leak_label_text(legend[i], legend, nr, max_chars);

		assert_string_equal(text, expected[i]);
		free(text);
	}
}

static void no_two_labels_are_equal(void **state)
{
	static const char text[] = HEAD2 CAUSE
		"cause 5 growth firm 3 7 3 worker\n\tworker+0x5  w.c:5  (/x)\n"
		"\tmain+0x1  (/x)\n" CAUSE_STACKS STACK(
			"8", "eight") "stack 5 growth firm 1 7 8 malloc eight cause=5\n" CAUSE_LEAKS
			STACK("4", "three") "leak 6 0x5 11.000000000 5 7 7 8 growth eight\n"
					    "leak 5 0x6 11.000000000 6 7 7 4 growth three\n";
	struct leak_set set = read_set(text, NULL);

	assert_legend(&set, 5, 80,
		      (const char *const[]){"worker <- main (2 stacks)",
					    "three <- worker (stack 3)", "two <- worker",
					    "worker <- main (3 stacks)",
					    "three <- worker (stack 4)"});
	/* Nor where they are cut. */
	assert_legend(&set, 5, 20,
		      (const char *const[]){"worker... (2 stacks)", "three <... (stack 3)",
					    "two <- worker", "worker... (3 stacks)",
					    "three <... (stack 4)"});
	leak_set_deinit(&set);
}

static void names_in_labels_are_escaped(void **state)
{
	struct leak_set set = read_set(HEAD2 "frames 1 malloc a\n\tmalloc+0x1  (/libc)\n"
					     "\ta\\x1b\\x0a\xc3\xa4+0x1  (/x)\n"
					     "leak 8 0x1 11.000000000 1 7 7 1 growth a\n",
				       NULL);

	assert_legend(&set, 1, 80, (const char *const[]){"a\\x1b\\x0a\xc3\xa4"});
	leak_set_deinit(&set);
}

static void wrong_definitions_are_rejected(void **state)
{
	static const char *const wrong[] = {
		/* twice, or too late */
		HEAD2 SEVEN SEVEN,
		HEAD2 "cause 2 growth firm 2 20 2 a\ncause 2 growth firm 1 1 2 a\n",
		HEAD2 "periods 1 10.000000000 60.000000000\ncause-history 2 held_bytes=1\n",
		HEAD2 SEVEN HEAD2 SEVEN,
		HEAD2 "leak 1 0x1 1.000000000 1 1 1 7 growth f\n" SEVEN,
		/* never */
		HEAD2 SEVEN "leak 1 0x1 1.000000000 1 1 1 8 growth f\n",
		HEAD2 SEVEN "stack 1 growth firm 1 1 8 malloc f\n",
		HEAD2 "periods 1 10.000000000 60.000000000\nhistory 7 held_bytes=1\n",
		HEAD2 "frames 4294967296 malloc f\n",
	};
	struct leak_set set;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		if (try_set(wrong[i], NULL, &set) != -EINVAL)
			fail_msg("accepted: %s", wrong[i]);
}

static void processes_have_one_name(void **state)
{
	struct leak_set set = read_set(HEAD "process 7 server 3 24\n"
					    "process 7 other 3 24\n"
					    "leak 8 0x1 11.000000000 10 7 7 main malloc 1\n"
					    "leak 8 0x2 11.000000000 10 7 8 worker-1 malloc 1\n"
					    "leak 8 0x3 11.000000000 10 7 9 worker-2 malloc 1\n"
					    "leak 8 0x4 11.000000000 10 10 11 unknown malloc 1\n",
				       NULL);

	assert_int_equal(set.nr_names, 2);
	assert_string_equal(set.names[0], "server");
	assert_string_equal(set.names[1], "unknown");
	leak_set_deinit(&set);
}

static void range_filters(void **state)
{
	struct size_range range = {64, 100};
	struct leak_set set = read_set(three_sizes, &range);

	assert_int_equal(set.nr_points, 2);
	assert_int_equal(set.nr_outside_range, 2);
	leak_set_deinit(&set);
}

static void most_frequent_sizes_come_first(void **state)
{
	char text[8192];
	size_t len = (size_t)snprintf(text, sizeof(text), HEAD), nr;
	/* Size i recurs i times, for 1 to 8: 1 does not recur. */
	for (int size = 1; size <= 8; size++)
		for (int i = 0; i < size; i++)
			len += (size_t)snprintf(text + len, sizeof(text) - len,
						"leak %d 0x1 11.000000000 1 1 1 x malloc %d\n",
						size, size);
	struct leak_set set = read_set(text, NULL);
	struct recurring_size sizes[3], all[20];

	assert_int_equal(leak_set_recurring_sizes(&set, sizes, 3, &nr), 0);
	assert_int_equal(nr, 3);
	for (size_t i = 0; i < nr; i++) {
		assert_int_equal(sizes[i].size_bytes, 8 - i);
		assert_int_equal(sizes[i].nr_leaks, 8 - i);
	}
	assert_int_equal(leak_set_recurring_sizes(&set, all, 20, &nr), 0);
	assert_int_equal(nr, 7);
	/* With more stacks than ranks, the rare ones have none. */
	assert_int_equal(set.ranked[0]->number, 8);
	assert_int_equal(set.ranked[LEAK_SET_RANKS - 1]->number, 8 - LEAK_SET_RANKS + 1);
	assert_int_equal(set.points[0].group->rank, LEAK_SET_RANKS);
	leak_set_deinit(&set);
}

static void scale_follows_the_span(void **state)
{
	struct leak_set set = read_set(three_sizes, NULL);

	assert_false(leak_axes_choose(&set, LEAK_SIZE_AUTO, false).log);
	assert_true(leak_axes_choose(&set, LEAK_SIZE_LOG, false).log);
	leak_set_deinit(&set);

	set = read_set(HEAD "leak 10 0x1 11.000000000 1 1 1 x malloc 1\n"
			    "leak 1010 0x2 12.000000000 2 1 1 x malloc 1\n",
		       NULL);
	assert_true(leak_axes_choose(&set, LEAK_SIZE_AUTO, false).log);
	assert_false(leak_axes_choose(&set, LEAK_SIZE_LINEAR, false).log);
	leak_set_deinit(&set);
}

static void axes_begin_with_the_recording(void **state)
{
	struct leak_set set = read_set(three_sizes, NULL);
	struct leak_axes axes = leak_axes_choose(&set, LEAK_SIZE_AUTO, false);

	assert_string_equal(axes.time.unit, "seconds");
	assert_true(leak_axes_x(&axes, &set.points[0]) == 1);
	assert_true(axes.x_max == 60);
	assert_string_equal(axes.size_unit.name, "KiB");
	assert_true(leak_axes_y(&axes, 3072) == 3);

	axes = leak_axes_choose(&set, LEAK_SIZE_AUTO, true);
	assert_true(leak_axes_x(&axes, &set.points[0]) == 10);
	assert_true(axes.x_max == 1000);
	leak_set_deinit(&set);
}

static void a_block_of_no_bytes_has_a_place_on_a_log_axis(void **state)
{
	struct leak_set set = read_set(HEAD "leak 0 0x1 11.000000000 1 1 1 x malloc 1\n"
					    "leak 1024 0x2 12.000000000 2 1 1 x malloc 1\n",
				       NULL);
	struct leak_axes axes = leak_axes_choose(&set, LEAK_SIZE_LOG, false);
	double position = leak_axes_y_position(&axes, 0);

	assert_true(position > 0 && position < leak_axes_y_position(&axes, 1));
	leak_set_deinit(&set);

	set = read_set(HEAD "leak 0 0x1 11.000000000 1 1 1 x malloc 1\n", NULL);
	assert_false(leak_axes_choose(&set, LEAK_SIZE_LOG, false).log);
	leak_set_deinit(&set);
}

static void sums_do_not_overflow(void **state)
{
	struct leak_set set =
		read_set(HEAD "leak 18446744073709551615 0x1 11.000000000 1 1 1 x malloc 1\n"
			      "leak 18446744073709551615 0x2 12.000000000 2 1 1 x malloc 1\n",
			 NULL);

	assert_true(set.total_bytes == UINT64_MAX);
	leak_axes_choose(&set, LEAK_SIZE_AUTO, false);
	assert_string_equal(quantity_size(set.total_bytes).text, "16 EiB");
	leak_set_deinit(&set);
}

static void time_units_fit_the_length(void **state)
{
	assert_string_equal(time_axis_make(0, UINT64_C(600) * 1000000000).unit, "seconds");
	assert_string_equal(time_axis_make(0, UINT64_C(601) * 1000000000).unit, "minutes");
	assert_string_equal(time_axis_make(0, UINT64_C(86400) * 1000000000).unit, "hours");
	assert_string_equal(time_axis_make(0, UINT64_MAX).unit, "days");

	/* Nanoseconds are exact on a day after 30 years of uptime. */
	struct time_axis axis = time_axis_make(UINT64_C(946080000000000000), UINT64_MAX);
	assert_true(time_axis_value(&axis, UINT64_C(946080000000000001)) > 0);
	assert_true(time_axis_value(&axis, UINT64_C(946079999999999999)) < 0);
}

static void a_long_history_keeps_its_peak(void **state)
{
	struct memory_history *history = calloc(1, sizeof(*history));
	uint64_t peak = 0;

	assert_non_null(history);
	for (uint64_t i = 0; i < 10 * MEMORY_HISTORY_MAX; i++)
		memory_history_add(history, &(struct memory_sample){
						    .time_ns = i,
						    .rss_bytes = i == 12345 ? 1000000 : 1,
						    .heap_bytes = i,
					    });
	assert_true(history->nr <= MEMORY_HISTORY_MAX);
	assert_int_equal(history->first.time_ns, 0);
	assert_int_equal(history->last.time_ns, 10 * MEMORY_HISTORY_MAX - 1);
	for (size_t i = 0; i < history->nr; i++) {
		if (history->samples[i].rss_bytes > peak)
			peak = history->samples[i].rss_bytes;
		assert_true(i == 0 ||
			    history->samples[i].time_ns > history->samples[i - 1].time_ns);
	}
	assert_int_equal(peak, 1000000);
	free(history);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(leaks_are_grouped_and_ranked),
		cmocka_unit_test(stacks_are_defined_once),
		cmocka_unit_test(the_largest_holders_are_ranked),
		cmocka_unit_test(stacks_of_a_cause_are_one),
		cmocka_unit_test(without_a_scan_the_title_says_nothing_of_one),
		cmocka_unit_test(lost_leaks_are_counted),
		cmocka_unit_test(the_title_says_how_many_look_like_leaks),
		cmocka_unit_test(what_is_lost_is_a_leak_whatever_its_verdict),
		cmocka_unit_test(a_cause_may_have_no_history),
		cmocka_unit_test(no_two_labels_are_equal),
		cmocka_unit_test(names_in_labels_are_escaped),
		cmocka_unit_test(wrong_definitions_are_rejected),
		cmocka_unit_test(processes_have_one_name),
		cmocka_unit_test(range_filters),
		cmocka_unit_test(most_frequent_sizes_come_first),
		cmocka_unit_test(scale_follows_the_span),
		cmocka_unit_test(axes_begin_with_the_recording),
		cmocka_unit_test(a_block_of_no_bytes_has_a_place_on_a_log_axis),
		cmocka_unit_test(sums_do_not_overflow),
		cmocka_unit_test(time_units_fit_the_length),
		cmocka_unit_test(a_long_history_keeps_its_peak),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
