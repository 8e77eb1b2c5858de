/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Converts generated recordings to the `leaks` text. */
#include "common/scope.h"
#include "report/text/leaks_writer.h"
#include "test/support/perf_data_writer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#define SECOND UINT64_C(1000000000)

static struct perf_data_writer *writer;
static int malloc_entry, malloc_return, malloc_call, free_entry, newtask;
static uint32_t cpu; /* of the samples */
static pid_t other;  /* another process for them, with another stack; or 0 */

static int setup(void **state)
{
	writer = perf_data_writer_create(NULL);
	malloc_entry = perf_data_add_probe(writer, "malloc", PROBE_ENTRY);
	malloc_return = perf_data_add_probe(writer, "malloc", PROBE_RETURN);
	malloc_call = perf_data_add_probe(writer, "malloc", PROBE_CALL);
	free_entry = perf_data_add_probe(writer, "free", PROBE_ENTRY);
	newtask = perf_data_add_newtask(writer);
	cpu = 0;
	return 0;
}

static int teardown(void **state)
{
	perf_data_writer_destroy(writer);
	return 0;
}

static void add(int event, uint64_t time_ns, const uint64_t *fields)
{
	const struct perf_data_sample sample = {
		.event = event,
		.pid = other ? other : 7,
		.tid = other ? other : 8,
		.cpu = cpu,
		.time_ns = time_ns,
		.fields = fields,
		.callchain = other ? (uint64_t[]){0x5010, 0x5020} : (uint64_t[]){0x4010, 0x4020},
		.nr_callchain = event == malloc_return || event == malloc_call ? 2 : 0,
	};

	perf_data_sample(writer, &sample);
}

static void add_call(uint64_t time_ns, uint64_t size, uint64_t block)
{
	add(malloc_call, time_ns, (uint64_t[]){0x9000, 0x4010, size, block});
}

static void add_pair(uint64_t time_ns, uint64_t size, uint64_t block)
{
	add(malloc_entry, time_ns, (uint64_t[]){0x9000, size, 0x4010});
	add(malloc_return, time_ns, (uint64_t[]){0x9000, 0x4010, block});
}

static void add_free(uint64_t time_ns, uint64_t block)
{
	add(free_entry, time_ns, (uint64_t[]){0xa000, block, 0x4010});
}

/* The output of leakparse; the caller frees it. */
static char *leaks_text(const struct leaks_options *options)
{
	const struct stack_store_options stacks = {0};
	_cleanup_close_ int fd = memfd_create("recording", MFD_CLOEXEC);
	struct analysis analysis;
	struct leak_report report;
	char path[64], *text;
	const char *paths[] = {path};
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_true(fd >= 0 && out);
	assert_int_equal(perf_data_write(writer, PERF_DATA_FILE, fd), 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	assert_int_equal(analysis_init(&analysis, &stacks, NULL), 0);
	assert_int_equal(analysis_read(&analysis, paths, 1), 0);
	assert_int_equal(leak_report_init(&report, &analysis, options), 0);
	assert_int_equal(leaks_write(out, &report), 0);
	leak_report_deinit(&report);
	analysis_deinit(&analysis);
	fclose(out);
	return text;
}

static void assert_has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("no \"%s\" in\n%s", part, text);
}

static void assert_lacks(const char *text, const char *part)
{
	if (strstr(text, part))
		fail_msg("\"%s\" in\n%s", part, text);
}

static void a_call_in_one_event_has_the_stack_of_a_return(void **state)
{
	const struct leaks_options options = {0};
	_cleanup_free_ char *text = NULL;

	add_call(1 * SECOND, 30, 0xa00);
	add_pair(2 * SECOND, 40, 0xb00);
	text = leaks_text(&options);
	assert_has(text, "# summary events=3 allocations=2 frees=0 held_blocks=2 held_bytes=70 ");
	assert_has(text, "\nframes 1 malloc 0x4010\n"
			 "\t0x9000  (unknown)\n\t0x4010  (unknown)\n\t0x4020  (unknown)\n"
			 "stack 1 unclear firm 2 70 1 malloc 0x4010 ");
	assert_has(text, "\nleak 30 0xa00 1.000000000 1 7 8 1 unclear 0x4010\n"
			 "leak 40 0xb00 2.000000000 3 7 8 1 unclear 0x4010\n");
}

static void of_one_size(void **state)
{
	const struct size_range size = {30, 40};
	const struct leaks_options all = {.list_unknown = true};
	const struct leaks_options some = {.list_unknown = true, .size = &size};
	_cleanup_free_ char *of_all = NULL, *of_some = NULL;

	add_call(1 * SECOND, 29, 0xa00);
	add_call(2 * SECOND, 30, 0xb00);
	add_pair(3 * SECOND, 40, 0xc00);
	add_pair(4 * SECOND, 41, 0xd00);
	add_call(5 * SECOND, 35, 0); /* fails */
	add_call(5 * SECOND, 50, 0);
	add_call(6 * SECOND, 31, 0xe00); /* freed twice */
	add_free(6 * SECOND, 0xe00);
	add_free(6 * SECOND + 1, 0xe00);
	add_call(7 * SECOND, 45, 0xf00); /* freed twice */
	add_free(7 * SECOND, 0xf00);
	add_free(7 * SECOND + 1, 0xf00);
	add_free(8 * SECOND, 0x1000); /* of an unknown size */
	add(malloc_return, 9 * SECOND, (uint64_t[]){0x9000, 0x4010, 0x1100});

	of_all = leaks_text(&all);
	assert_has(of_all, "# summary events=16 allocations=7 frees=2 held_blocks=5 "
			   "held_bytes=140 ");
	assert_has(of_all, " free_unknown=1 double_free=2 still_held=0 realloc_unknown=0 "
			   "alloc_failed=2 ");
	assert_has(of_all, "unexpected alloc-failed 50 0x0 5.");
	assert_has(of_all, "unexpected free-unknown ? 0x1000 8.");
	assert_has(of_all, "leak ? 0x1100 9.");

	of_some = leaks_text(&some);
	assert_has(of_some, "# summary size=30..40 events=16 allocations=7 frees=2 held_blocks=2 "
			    "held_bytes=70 ");
	assert_has(of_some, " free_unknown=0 double_free=1 still_held=0 realloc_unknown=0 "
			    "alloc_failed=1 ");
	assert_has(of_some, "leak 30 0xb00 2.");
	assert_has(of_some, "leak 40 0xc00 3.");
	assert_has(of_some, "unexpected alloc-failed 35 0x0 5.");
	assert_has(of_some, "unexpected double-free 31 0xe00 6.");
	assert_has(of_some, "allocated 31 0xe00 6.");
	assert_lacks(of_some, "leak 29");
	assert_lacks(of_some, "leak 41");
	assert_lacks(of_some, " 50 0x0");
	assert_lacks(of_some, "0xf00");
	assert_lacks(of_some, " ? 0x");
}

static void of_one_size_exactly(void **state)
{
	const struct size_range size = {0, 0};
	const struct leaks_options options = {.size = &size};
	_cleanup_free_ char *text = NULL;

	add_call(1 * SECOND, 0, 0xa00);
	add(malloc_return, 2 * SECOND, (uint64_t[]){0x9000, 0x4010, 0xb00}); /* unknown */
	text = leaks_text(&options);
	assert_has(text, "# summary size=0 events=2 allocations=2 frees=0 held_blocks=1 ");
	assert_has(text, "leak 0 0xa00");
	assert_lacks(text, "0xb00");
}

static void without_losses(void **state)
{
	const struct leaks_options options = {0};
	_cleanup_free_ char *text = NULL;

	add_call(1 * SECOND, 30, 0xa00);
	text = leaks_text(&options);
	assert_has(text, " lost=0 ");
	assert_has(text, " loss_windows=0 lost_any_time=0 ");
	assert_lacks(text, "# lost:");
}

/*
 * The name of the first thread; if that has none, of the first thread that has one, whichever holds
 * blocks.
 */
static void processes_have_one_name(void **state)
{
	const struct leaks_options options = {0};
	_cleanup_free_ char *text = NULL;

	perf_data_fork(writer, 7, 9, 7, 8, 1 * SECOND);
	perf_data_comm(writer, 7, 9, 2 * SECOND, "a b", false);
	add_call(10 * SECOND, 1, 0xa00);
	perf_data_comm(writer, 20, 20, 11 * SECOND, "server", false);
	perf_data_comm(writer, 20, 21, 11 * SECOND, "worker", false);
	other = 20;
	add_call(12 * SECOND, 2, 0xb00);
	other = 0;
	text = leaks_text(&options);
	assert_has(text, "\n# columns: process PID NAME BLOCKS BYTES KEY=VALUE...\n");
	assert_has(text, "\nprocess 7 a\\x20b 1 1\n");
	assert_has(text, "\nprocess 20 server 1 2\n");
	assert_has(text, "\n# columns: thread TID PID COMM\nthread 8 7 ?\nthread 20 20 server\n#");
}

static void when_events_were_lost(void **state)
{
	const struct leaks_options options = {0};
	_cleanup_free_ char *text = NULL;

	add_call(10 * SECOND, 1, 0xa00);
	cpu = 1;
	add_call(12 * SECOND, 2, 0xb00);
	perf_data_fork(writer, 7, 9, 7, 8, 13 * SECOND); /* CPU 0, but another ring */
	perf_data_lost_on(writer, malloc_return, 0, 14 * SECOND, 5);
	cpu = 0;
	add_call(14 * SECOND, 3, 0xc00);
	add_call(15 * SECOND, 4, 0xd00);
	add_call(16 * SECOND, 5, 0xe00);
	perf_data_lost_on(writer, free_entry, 0, 17 * SECOND + 500, 1);
	add_call(20 * SECOND, 6, 0xf00);
	text = leaks_text(&options);
	assert_has(text, " lost=6 ");
	assert_has(text, " loss_windows=2 lost_any_time=0 ");
	assert_has(text, " start=10.000000000 end=20.000000000\n"
			 "# lost: 5 events within 0.000000000..4.000000000 s after the start\n"
			 "# lost: 1 events within 6.000000000..7.000000500 s after the start\n"
			 "# columns: process");
}

static void what_losses_make_doubtful(void **state)
{
	const struct leaks_options options = {0};
	_cleanup_free_ char *text = NULL;

	for (uint64_t i = 0; i < 10; i++)
		add_call((10 + i) * SECOND, 100, 0xa000 + 0x100 * i);
	perf_data_lost_on(writer, free_entry, 0, 30 * SECOND, 2);
	add_call(40 * SECOND, 7, 0xb00);
	text = leaks_text(&options);
	/* Each lost event can explain one block, so most blocks of the stack are firm. */
	assert_has(text, " firm_blocks=9 stacks=1 ");
	assert_has(text, ", firm: 11 blocks, 1007 bytes; ");
	assert_has(text, "leak 100 0xa000 10.000000000 1 7 8 1 plateau 0x4010 doubtful:lost\n");
	assert_has(text, "leak 7 0xb00 40.000000000 11 7 8 1 plateau 0x4010\n");
}

/* Two lost events can explain two of any three. */
static void of_what_is_shown_so_many_are_certain(void **state)
{
	const struct size_range sizes[] = {{100, 102}, {107, 111}, {110, 110}, {0, 1000}};
	const char *const firm[] = {" firm_blocks=1 ", " firm_blocks=2 ", " firm_blocks=1 ",
				    " firm_blocks=9 "};

	for (uint64_t i = 0; i < 10; i++)
		add_call((10 + i) * SECOND, 100 + i, 0xa000 + 0x100 * i);
	perf_data_lost_on(writer, free_entry, 0, 30 * SECOND, 2);
	add_call(40 * SECOND, 110, 0xb00);
	for (int i = 0; i < 4; i++) {
		const struct leaks_options options = {.size = &sizes[i]};
		_cleanup_free_ char *text = leaks_text(&options);

		assert_has(text, firm[i]);
	}
}

static void halves_of_calls_are_audited(void **state)
{
	const struct leaks_options options = {0};
	_cleanup_free_ char *text = NULL;

	add(malloc_return, 1 * SECOND, (uint64_t[]){0x9000, 0x4010, 0xa00});
	add_call(2 * SECOND, 30, 0xb00);
	cpu = 1; /* whose clock is behind */
	add(malloc_return, 3 * SECOND, (uint64_t[]){0x9000, 0x4010, 0xc00});
	cpu = 0;
	add(malloc_entry, 4 * SECOND, (uint64_t[]){0x9000, 20, 0x4010});
	text = leaks_text(&options);
	assert_has(text, "\n# audit: return-at-start 1 ");
	assert_has(text, "\n# audit: return-without-entry 1 ");
	assert_has(text, "\n# audit: clock-step 1 ");
	assert_has(text, "\n# audit: entry-recording-ended 1 ");
	assert_lacks(text, "# audit: entry-jumped-over");
	assert_has(text, "leak ? 0xa00 1.000000000 1 7 8 1 unclear 0x4010 doubtful:unpaired\n");
}

static void what_went_with_its_process(void **state)
{
	const struct leaks_options options = {0};
	_cleanup_free_ char *text = NULL;

	perf_data_fork(writer, 7, 7, 1, 1, 1 * SECOND);
	add_call(10 * SECOND, 30, 0xa00);
	add_call(11 * SECOND, 30, 0xb00);
	perf_data_exit(writer, 7, 8, 12 * SECOND);
	perf_data_exit(writer, 7, 7, 12 * SECOND);
	other = 9;
	add_call(100 * SECOND, 40, 0xa00);
	other = 0;
	text = leaks_text(&options);
	assert_has(text, "\nprocess 7 ? 2 60 end=12.000000000\n");
	assert_has(text, "stack 2 at-exit firm 2 60 ");
	assert_has(text, "; none of 2 freed; the oldest is 2.00 s old (its process has exited)\n");
	assert_has(text, "leak 30 0xa00 10.000000000 1 7 8 1 at-exit 0x4010\n");
}

static size_t count(const char *text, const char *part)
{
	size_t nr = 0;

	for (; (text = strstr(text, part)); text++)
		nr++;
	return nr;
}

/* The definition comes once, before the first of the lines that use it. */
static void a_stack_is_written_once(void **state)
{
	const struct leaks_options by_verdict = {.list_unknown = true};
	const struct leaks_options by_time = {.list_unknown = true, .order = LEAK_ORDER_TIME};
	_cleanup_free_ char *grouped = NULL, *listed = NULL;

	add_call(1 * SECOND, 30, 0xa00);
	other = 20;
	add_call(2 * SECOND, 40, 0xb00);
	other = 0;
	for (uint64_t i = 0; i < 10; i++)
		add_call((3 + i) * SECOND, 30, 0xc000 + 0x100 * i);
	add_free(14 * SECOND, 0xa00);
	add_free(15 * SECOND, 0xa00); /* twice */
	add_free(16 * SECOND, 0x5000);
	add_call(17 * SECOND, 30, 0xb000);

	grouped = leaks_text(&by_verdict);
	assert_int_equal(count(grouped, "\nframes 1 malloc 0x4010\n\t0x9000"), 1);
	assert_int_equal(count(grouped, "\nframes 2 malloc 0x4010\n\t0x9000"), 1);
	assert_int_equal(count(grouped, "\nframes "), 3);
	assert_int_equal(count(grouped, "\n\t"), 3 + 4 + 2);
	assert_true(strstr(grouped, "\nframes 2 ") < strstr(grouped, "\nstack 2 "));
	assert_has(grouped, "\nframes 3 free 0x4010\n"
			    "\t0xa000  (unknown)\n\t0x4010  (unknown)\n"
			    "unexpected double-free 30 0xa00 15.000000000 14 7 8 ? free 3 0x4010\n"
			    "freed-before 30 0xa00 14.000000000 13 7 8 ? free 3 0x4010\n"
			    "allocated 30 0xa00 1.000000000 1 7 8 ? malloc 1 0x4010\n");

	listed = leaks_text(&by_time);
	assert_int_equal(count(listed, "\nframes "), 3);
	assert_int_equal(count(listed, "\n\t"), 3 + 4 + 2);
	assert_true(strstr(listed, "\nframes 1 ") < strstr(listed, "\nallocated "));
	assert_has(listed, "\nframes 2 malloc 0x4010\n\t0x9000  (unknown)\n\t0x4010  (unknown)\n"
			   "\t0x5010  (unknown)\n\t0x5020  (unknown)\n"
			   "leak 40 0xb00 ");
}

static void a_stack_of_two_functions(void **state)
{
	const struct leaks_options options = {0};
	int valloc_call = perf_data_add_probe(writer, "valloc", PROBE_CALL);
	_cleanup_free_ char *text = NULL;

	add_call(1 * SECOND, 30, 0xa00);
	malloc_call = valloc_call;
	add_call(2 * SECOND, 40, 0xb00);
	text = leaks_text(&options);
	assert_has(text, "\nleak 30 0xa00 1.000000000 1 7 8 1 unclear 0x4010\n"
			 "leak 40 0xb00 2.000000000 2 7 8 1 unclear 0x4010 function=valloc\n");
}

static void in_the_order_of_time(void **state)
{
	const struct leaks_options options = {.order = LEAK_ORDER_TIME};
	_cleanup_free_ char *text = NULL;

	add_call(1 * SECOND, 30, 0xa00);
	add_call(2 * SECOND, 40, 0xb00);
	text = leaks_text(&options);
	assert_lacks(text, "\nstack ");
	assert_true(strstr(text, "\nleak 30 ") < strstr(text, "\nleak 40 "));
}

static void of_an_age(void **state)
{
	const struct leaks_options options = {.min_age_ns = 2 * SECOND, .max_age_ns = 8 * SECOND};
	_cleanup_free_ char *text = NULL;

	add_call(1 * SECOND, 10, 0xa00);
	add_call(2 * SECOND, 20, 0xb00);
	add_call(8 * SECOND, 30, 0xc00);
	add_call(9 * SECOND, 40, 0xd00);
	add_call(10 * SECOND, 50, 0xe00);
	text = leaks_text(&options);
	assert_has(text, " held_blocks=2 held_bytes=50 ");
	assert_has(text, " narrowed=1 ");
	assert_has(text, "\nleak 20 ");
	assert_has(text, "\nleak 30 ");
	assert_lacks(text, "\nleak 10 ");
	assert_lacks(text, "\nleak 40 ");
}

static void lost_by_the_ring_of_the_other_records(void **state)
{
	const struct leaks_options options = {0};
	_cleanup_free_ char *text = NULL;

	add_call(10 * SECOND, 1, 0xa00);
	perf_data_fork(writer, 7, 9, 7, 8, 13 * SECOND);
	add_call(14 * SECOND, 2, 0xb00);
	perf_data_lost_on(writer, newtask, 0, 18 * SECOND, 2);
	perf_data_comm(writer, 7, 9, 19 * SECOND, "x", false);
	perf_data_lost_on(writer, newtask, 0, 20 * SECOND, 3);
	text = leaks_text(&options);
	assert_has(text, "# lost: 2 events within 3.000000000..8.000000000 s after the start\n"
			 "# lost: 3 events within 9.000000000..10.000000000 s after the start\n"
			 "# columns");
}

static void what_was_lost_on_one_cpu_is_apart_where_times_are(void **state)
{
	const struct leaks_options options = {0};
	_cleanup_free_ char *text = NULL;

	for (uint64_t i = 0; i < 9; i++) {
		add_call((10 + 2 * i) * SECOND, i, 0xa000 + 0x100 * i);
		perf_data_lost_on(writer, malloc_call, 0, (10 + 2 * i) * SECOND + 250, 1 + i);
		add_call((10 + 2 * i) * SECOND + 500, i, 0xb000 + 0x100 * i);
	}
	perf_data_lost_samples(writer, 50); /* 45 of them are in the LOST records */
	text = leaks_text(&options);
	assert_has(text, " lost=50 ");
	assert_has(text, " loss_windows=9 lost_any_time=5 ");
	assert_has(text, "# lost: 1 events within 0.000000000..0.000000250 s after the start\n"
			 "# lost: 2 events within 2.000000000..2.000000250 s after the start\n"
			 "# lost: 3 events within 4.000000000..4.000000250 s after the start\n"
			 "# lost: 3 more windows\n"
			 "# lost: 7 events within 12.000000000..12.000000250 s after the start\n"
			 "# lost: 8 events within 14.000000000..14.000000250 s after the start\n"
			 "# lost: 9 events within 16.000000000..16.000000250 s after the start\n"
			 "# lost: 5 events at any time\n");
}

static void lost_on_a_cpu_that_had_no_event(void **state)
{
	const struct leaks_options options = {0};
	_cleanup_free_ char *text = NULL;

	add_call(10 * SECOND, 1, 0xa00);
	perf_data_lost_on(writer, malloc_call, 3, 11 * SECOND, 5);
	perf_data_lost_on(writer, malloc_call, UINT32_MAX, 12 * SECOND, 5);
	text = leaks_text(&options);
	assert_has(text, "# lost: 10 events within 0.000000000..2.000000000 s after the start\n"
			 "# columns");
}

/* leakrec:doubt: an unknown number of events is missing. */
static void unguarded_tasks_make_all_doubtful(void **state)
{
	const struct leaks_options options = {0};
	int doubt = perf_data_add_event(writer, "leakrec", "doubt", "u32 by_signal\nu64 number");
	_cleanup_free_ char *text = NULL;

	add_call(10 * SECOND, 1, 0xa00);
	add_call(11 * SECOND, 2, 0xb00);
	add(doubt, 12 * SECOND, (uint64_t[]){0, 3});
	text = leaks_text(&options);
	assert_has(text, " lost=0 ");
	assert_has(text, " firm_blocks=0 ");
	assert_has(text, " unguarded_tasks=3 ");
	assert_has(text, "\n# lost: possibly uncounted events: 3 processes, threads or files ");
	assert_has(text, " doubtful:lost ");
	assert_lacks(text, " firm ");
}

/* leakrec:doubt with 0: first calls may be missing, but what is held is certain. */
static void missing_first_calls_are_told(void **state)
{
	const struct leaks_options options = {0};
	int doubt = perf_data_add_event(writer, "leakrec", "doubt", "u32 by_signal\nu64 number");
	_cleanup_free_ char *text = NULL;

	add_call(10 * SECOND, 1, 0xa00);
	add(doubt, 12 * SECOND, (uint64_t[]){0, 0});
	text = leaks_text(&options);
	assert_has(text, " lost=0 ");
	assert_has(text, " firm_blocks=1 ");
	assert_has(text, " lost_more=1 ");
	assert_has(text, "\n# lost: possibly uncounted events: first calls of ");
	assert_lacks(text, "unguarded");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static void histories_are_of_whole_stacks(void **state)
{
	const struct size_range size = {30, 30};
	const struct leaks_options all = {0}, of_size = {.size = &size}, old = {.min_age_ns = 1},
				   plain = {.order = LEAK_ORDER_TIME};
	_cleanup_free_ char *text = NULL, *sized = NULL, *aged = NULL, *listed = NULL;

	add_call(1 * SECOND, 30, 0xa00);
	add_call(2 * SECOND, 40, 0xb00);
	add_free(3 * SECOND, 0xb00);
	text = leaks_text(&all);
	/* With periods of 2^25 ns, at most 64 reach that far. */
	assert_has(text,
		   "\nperiods 60 1.000000000 0.033554432 peak=2.000000000\n# columns: history ");
	assert_has(text, "history all held_bytes=30,");
	assert_has(text, ",70,70,30 held_blocks=1,");
	assert_has(text, ",2,2,1 at_peak_bytes=70 at_peak_blocks=2 lifetimes=805306368:1\n");
	assert_has(text, "\n# columns: history STACK KEY=VALUE...\n");
	sized = leaks_text(&of_size);
	assert_lacks(sized, "history");
	aged = leaks_text(&old);
	assert_lacks(aged, "history");
	listed = leaks_text(&plain);
	assert_lacks(listed, "history");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_call_in_one_event_has_the_stack_of_a_return),
		TEST(histories_are_of_whole_stacks),
		TEST(of_one_size),
		TEST(of_one_size_exactly),
		TEST(without_losses),
		TEST(processes_have_one_name),
		TEST(when_events_were_lost),
		TEST(what_losses_make_doubtful),
		TEST(of_what_is_shown_so_many_are_certain),
		TEST(halves_of_calls_are_audited),
		TEST(what_went_with_its_process),
		TEST(a_stack_is_written_once),
		TEST(a_stack_of_two_functions),
		TEST(in_the_order_of_time),
		TEST(of_an_age),
		TEST(lost_by_the_ring_of_the_other_records),
		TEST(what_was_lost_on_one_cpu_is_apart_where_times_are),
		TEST(lost_on_a_cpu_that_had_no_event),
		TEST(unguarded_tasks_make_all_doubtful),
		TEST(missing_first_calls_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
