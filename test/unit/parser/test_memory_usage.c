/* SPDX-License-Identifier: GPL-2.0-or-later */
/* leakrec:memory: how much processes grew, and how --summary says it. */
#include "common/scope.h"
#include "report/text/memory_report.h"
#include "test/support/perf_data_writer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#define MIB (UINT64_C(1) << 20)
#define S   UINT64_C(1000000000)

#define WITH_MMAP                                                                                  \
	"  Record with --with mmap to see who maps memory: the program, a runtime such\n"          \
	"  as Go's or Java's, or an allocator that is not recorded\n"

struct maker {
	struct perf_data_writer *writer;
	int call, release, recording, memory, mmap_entry;
};

static struct maker make(void)
{
	struct maker maker = {.writer = perf_data_writer_create(NULL)};

	maker.call = perf_data_add_probe(maker.writer, "malloc", PROBE_CALL);
	maker.release = perf_data_add_probe(maker.writer, "free", PROBE_ENTRY);
	maker.recording = perf_data_add_event(maker.writer, "leakrec", "recording", "u32 end");
	maker.memory =
		perf_data_add_event(maker.writer, "leakrec", "memory",
				    "u32 turn\nu64 anon\nu64 file\nu64 shared\nu64 swap\nu64 data");
	maker.mmap_entry = perf_data_add_event(maker.writer, "syscalls", "sys_enter_munmap",
					       "u64 addr\nu64 len");
	return maker;
}

static void add(const struct maker *maker, int event, pid_t pid, uint64_t time_ns,
		const uint64_t *fields)
{
	perf_data_sample(maker->writer, &(struct perf_data_sample){.event = event,
								   .pid = pid,
								   .tid = pid,
								   .time_ns = time_ns,
								   .fields = fields});
}

static void bound(const struct maker *maker, uint64_t time_ns, uint64_t end)
{
	add(maker, maker->recording, 1, time_ns, &end);
}

static void allocate(const struct maker *maker, pid_t pid, uint64_t time_ns, uint64_t bytes)
{
	add(maker, maker->call, pid, time_ns, (uint64_t[]){0x7000, 0x400010, bytes, time_ns});
}

/* Frees what was allocated at that time. */
static void release(const struct maker *maker, pid_t pid, uint64_t time_ns, uint64_t allocated_ns)
{
	add(maker, maker->release, pid, time_ns, (uint64_t[]){0x7100, allocated_ns, 0x400020});
}

/* A sample, in MiB. */
struct mib {
	uint64_t anon, file, shared, swap, data;
};

static void sample(const struct maker *maker, pid_t pid, uint64_t time_ns, uint64_t turn,
		   struct mib mib)
{
	add(maker, maker->memory, pid, time_ns,
	    (uint64_t[]){turn, mib.anon * MIB, mib.file * MIB, mib.shared * MIB, mib.swap * MIB,
			 mib.data * MIB});
}

/* Reads the recording; the caller calls analysis_deinit(). */
static void finish(struct maker *maker, struct analysis *ret)
{
	_cleanup_close_ int fd = memfd_create("recording", MFD_CLOEXEC);
	char path[64];

	assert_true(fd >= 0);
	assert_int_equal(perf_data_write(maker->writer, PERF_DATA_FILE, fd), 0);
	perf_data_writer_destroy(maker->writer);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	assert_int_equal(analysis_init(ret, NULL, NULL), 0);
	assert_int_equal(analysis_read(ret, (const char *[]){path}, 1), 0);
}

static bool is_started; /* by leakrec */
static bool in_windows;

/* Checks and frees what --summary says of the recording. */
static void assert_words(struct maker maker, const char *expected)
{
	const struct leaks_options all = {0};
	struct analysis analysis;
	struct leak_report report;
	_cleanup_free_ char *text = NULL;
	int nr_lines, nr_found = 0;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	finish(&maker, &analysis);
	analysis.input.command.starts_command = is_started;
	assert_int_equal(leak_report_init(&report, &analysis, &all), 0);
	assert_non_null(out);
	report.in_windows = in_windows;
	nr_lines = memory_report_write(out, &report);
	fclose(out);
	assert_string_equal(text, expected);
	for (const char *c = text; *c; c++)
		nr_found += *c == '\n';
	assert_int_equal(nr_lines, nr_found);
	leak_report_deinit(&report);
	analysis_deinit(&analysis);
}

/* One process that grows from @first to @last in 10 s, with 2 MiB allocated between them. */
static struct maker make_growth(struct mib first, struct mib last)
{
	struct maker maker = make();

	bound(&maker, S, 0);
	sample(&maker, 7, S, 1, first);
	allocate(&maker, 7, 2 * S, 2 * MIB);
	sample(&maker, 7, 11 * S, 2, last);
	bound(&maker, 11 * S, 1);
	return maker;
}

static void growth_is_divided(void **state)
{
	assert_words(
		make_growth((struct mib){10, 5, 0, 0, 12}, (struct mib){12, 5, 0, 0, 14}),
		"RSS grew by 2.00 MiB: +2.00 MiB in recorded blocks, 0 bytes in other anonymous "
		"memory\n");
	/* The sum of the parts is RSS. */
	assert_words(
		make_growth((struct mib){10, 5, 2, 8, 20}, (struct mib){12, 9, 4, 12, 26}),
		"RSS grew by 8.00 MiB: +2.00 MiB in recorded blocks, +4.00 MiB in other anonymous "
		"memory, +4.00 MiB in mapped files, +2.00 MiB in shared memory, -4.00 MiB by "
		"swapping\n"
		"  No recorded allocation can explain 3.50 MiB of the other anonymous memory\n" WITH_MMAP);
}

static void growth_in_windows_is_not_divided(void **state)
{
	in_windows = true;
	assert_words(make_growth((struct mib){10, 5, 0, 0, 12}, (struct mib){112, 5, 0, 0, 14}),
		     "RSS grew by 102 MiB\n");
	in_windows = false;
}

static void memory_that_was_mapped_before(void **state)
{
	assert_words(
		make_growth((struct mib){10, 0, 0, 0, 500}, (struct mib){112, 0, 0, 0, 502}),
		"RSS grew by 102 MiB: +2.00 MiB in recorded blocks, +100 MiB in other anonymous "
		"memory\n"
		"  No recorded allocation can explain 99.5 MiB of the other anonymous memory\n"
		"  Hardly any memory was mapped: the process may have begun to use memory that "
		"it had before\n");
}

static void a_started_command_is_not_older(void **state)
{
	is_started = true;
	assert_words(
		make_growth((struct mib){10, 0, 0, 0, 500}, (struct mib){112, 0, 0, 0, 502}),
		"RSS grew by 102 MiB: +2.00 MiB in recorded blocks, +100 MiB in other anonymous "
		"memory\n"
		"  No recorded allocation can explain 99.5 MiB of the other anonymous memory\n"
		"  Hardly any memory was mapped: the program may have begun to use large "
		"variables\n");
	is_started = false;
}

static void mappings_that_were_recorded(void **state)
{
	struct maker maker =
		make_growth((struct mib){10, 0, 0, 0, 0}, (struct mib){112, 0, 0, 0, 102});

	add(&maker, maker.mmap_entry, 7, 3 * S, (uint64_t[]){0x10000, 4096});
	assert_words(
		maker,
		"RSS grew by 102 MiB: +2.00 MiB in recorded blocks, +100 MiB in other anonymous "
		"memory\n"
		"  No recorded allocation can explain 99.5 MiB of the other anonymous memory\n"
		"  leakparse --kind mapping shows what was mapped\n");
}

/* 100 MiB were allocated and freed; the allocator kept what it needs for them. */
static void memory_that_the_allocator_keeps(void **state)
{
	struct maker maker = make();

	bound(&maker, S, 0);
	sample(&maker, 7, S, 1, (struct mib){10, 0, 0, 0, 10});
	allocate(&maker, 7, 2 * S, 100 * MIB);
	release(&maker, 7, 3 * S, 2 * S);
	sample(&maker, 7, 11 * S, 2, (struct mib){90, 0, 0, 0, 90});
	assert_words(
		maker,
		"RSS grew by 80.0 MiB: 0 bytes in recorded blocks, +80.0 MiB in other anonymous memory\n"
		"  The allocator may keep freed memory, and each block takes some bytes "
		"more\n");
	/* Never more than 10 MiB at a time, but 100 in all: nobody knows. */
	maker = make();
	bound(&maker, S, 0);
	sample(&maker, 7, S, 1, (struct mib){10, 0, 0, 0, 10});
	for (uint64_t i = 0; i < 10; i++) {
		allocate(&maker, 7, (2 + 2 * i) * S, 10 * MIB);
		release(&maker, 7, (3 + 2 * i) * S, (2 + 2 * i) * S);
	}
	sample(&maker, 7, 30 * S, 2, (struct mib){90, 0, 0, 0, 90});
	assert_words(
		maker,
		"RSS grew by 80.0 MiB: 0 bytes in recorded blocks, +80.0 MiB in other anonymous memory\n"
		"  Recorded blocks never took that much at one time: it may be free memory\n"
		"  between them (fragmentation), or memory from elsewhere\n" WITH_MMAP);
}

static void blocks_that_are_not_used(void **state)
{
	struct maker maker = make();

	bound(&maker, S, 0);
	sample(&maker, 7, S, 1, (struct mib){10, 0, 0, 0, 10});
	allocate(&maker, 7, 2 * S, 100 * MIB);
	sample(&maker, 7, 11 * S, 2, (struct mib){13, 0, 0, 0, 113});
	assert_words(
		maker,
		"RSS grew by 3.00 MiB: +100 MiB in recorded blocks, -97.0 MiB in other anonymous "
		"memory\n"
		"  Blocks that are not written to take no RAM; or other memory was given "
		"back\n");
}

static void memory_that_shrank(void **state)
{
	struct maker maker = make();

	bound(&maker, S, 0);
	sample(&maker, 7, S, 1, (struct mib){90, 8, 0, 0, 90});
	sample(&maker, 7, 11 * S, 2, (struct mib){10, 4, 0, 0, 10});
	assert_words(
		maker,
		"RSS shrank by 84.0 MiB: 0 bytes in recorded blocks, -80.0 MiB in other anonymous "
		"memory, -4.00 MiB in mapped files\n");
}

/* The third ends, the fourth comes, the fifth executes another program. */
static void processes_that_come_and_go(void **state)
{
	struct maker maker = make();
	const struct mib small = {10, 0, 0, 0, 10}, large = {14, 0, 0, 0, 14};

	bound(&maker, S, 0);
	for (pid_t pid = 1; pid <= 3; pid++)
		sample(&maker, pid, S + (uint64_t)pid, 1, small);
	sample(&maker, 5, S + 5, 1, (struct mib){100, 0, 0, 0, 100});
	perf_data_fork(maker.writer, 4, 4, 1, 1, 2 * S);
	perf_data_comm(maker.writer, 5, 5, 3 * S, "other", true);
	sample(&maker, 1, 4 * S, 2, small);
	sample(&maker, 2, 4 * S, 2, small);
	sample(&maker, 4, 4 * S, 2, small);
	sample(&maker, 5, 4 * S, 2, small);
	allocate(&maker, 1, 5 * S, 4 * MIB);
	sample(&maker, 1, 11 * S, 3, large);
	sample(&maker, 2, 11 * S, 3, small);
	sample(&maker, 4, 11 * S, 3, small);
	sample(&maker, 5, 11 * S, 3, small);
	bound(&maker, 11 * S, 1);
	assert_words(maker,
		     "RSS of 4 processes grew by 4.00 MiB: +4.00 MiB in recorded blocks, 0 bytes "
		     "in other anonymous memory\n");
}

static void a_process_that_ended_before_the_recording(void **state)
{
	struct maker maker = make();

	bound(&maker, S, 0);
	sample(&maker, 7, S, 1, (struct mib){10, 0, 0, 0, 10});
	sample(&maker, 7, 4 * S, 2, (struct mib){10, 0, 0, 0, 10});
	bound(&maker, 11 * S, 1);
	assert_words(maker,
		     "RSS grew by 0 bytes in the first 3.00 s: 0 bytes in recorded blocks, 0 bytes "
		     "in other anonymous memory\n");
}

static void too_little_is_known(void **state)
{
	struct maker maker = make();

	bound(&maker, S, 0);
	allocate(&maker, 7, 2 * S, 100);
	assert_words(maker, "");
	maker = make();
	sample(&maker, 7, S, 1, (struct mib){10, 0, 0, 0, 10});
	assert_words(maker, "");
}

/* The second recording's turns begin with 1 again. */
static void recordings_of_a_session(void **state)
{
	struct maker maker = make();

	bound(&maker, S, 0);
	for (uint64_t turn = 1; turn <= 5; turn++)
		sample(&maker, 7, S + turn, turn, (struct mib){10, 0, 0, 0, 10});
	sample(&maker, 8, S + 5, 5, (struct mib){10, 0, 0, 0, 10});
	bound(&maker, 2 * S, 1);
	bound(&maker, 3 * S, 0);
	sample(&maker, 7, 4 * S, 1, (struct mib){10, 1, 0, 0, 10});
	bound(&maker, 4 * S, 1);
	assert_words(maker,
		     "RSS grew by 1.00 MiB: 0 bytes in recorded blocks, 0 bytes in other anonymous "
		     "memory, +1.00 MiB in mapped files\n");
}

static void hostile_numbers_do_no_harm(void **state)
{
	struct maker maker = make();
	const uint64_t huge[] = {UINT32_MAX, UINT64_MAX, UINT64_MAX,
				 UINT64_MAX, UINT64_MAX, UINT64_MAX};
	struct memory_balance balance;
	struct analysis analysis;

	for (pid_t pid = 1; pid <= 6000; pid++) {
		sample(&maker, pid, S, UINT32_MAX, (struct mib){0});
		add(&maker, maker.memory, pid, 2 * S, huge);
	}
	finish(&maker, &analysis);
	memory_usage_balance(analysis.memory, &balance);
	assert_int_equal(balance.nr_processes, 4096);
	assert_true(balance.rss > 0 && balance.other > 0 && balance.swap < 0);
	assert_int_equal(balance.rss, balance.other + balance.file + balance.shared + balance.swap);
	analysis_deinit(&analysis);
}

/* What two processes had at their peaks, with what was swapped out then and is now. */
static void memory_has_a_bound(void **state)
{
	struct maker maker = make();
	struct analysis analysis;

	sample(&maker, 7, S, 1, (struct mib){10, 5, 0, 0, 12});
	sample(&maker, 7, 2 * S, 2, (struct mib){20, 5, 1, 2, 12});
	sample(&maker, 7, 3 * S, 3, (struct mib){10, 5, 0, 4, 12});
	sample(&maker, 8, 3 * S, 3, (struct mib){3, 0, 0, 0, 3});
	finish(&maker, &analysis);
	assert_int_equal(memory_usage_most(analysis.memory), (26 + 2 + 4 + 3) * MIB);
	memory_usage_restart(analysis.memory, 8);
	assert_int_equal(memory_usage_most(analysis.memory), 0);
	analysis_deinit(&analysis);
}

/* One process after the other, of which leakrec samples each twice. */
static void ended_processes_make_room(void **state)
{
	struct maker maker = make();
	struct memory_balance balance;
	struct analysis analysis;
	const pid_t nr = 6000;

	for (pid_t pid = 1; pid <= nr; pid++)
		for (uint64_t i = 0; i < 2; i++)
			sample(&maker, pid, (uint64_t)pid * S + i, (uint64_t)pid + i,
			       (struct mib){10 + i, 0, 0, 0, 10});
	finish(&maker, &analysis);
	memory_usage_balance(analysis.memory, &balance);
	assert_int_equal(balance.nr_processes, 1);
	assert_int_equal(balance.nr_ended, nr - 1);
	assert_int_equal(balance.rss, MIB);
	analysis_deinit(&analysis);
}

/* Of many samples, a bounded number is kept, from the first one on. */
static void points_are_bounded(void **state)
{
	struct maker maker = make();
	const struct memory_process *process;
	struct analysis analysis;

	for (uint64_t i = 0; i < 1000; i++)
		sample(&maker, 7, (i + 1) * S, i + 1,
		       (struct mib){i == 700 ? 5000 : i, 0, 0, 0, 0});
	finish(&maker, &analysis);
	process = memory_usage_next(analysis.memory, NULL);
	assert_non_null(process);
	assert_null(memory_usage_next(analysis.memory, process));
	assert_int_equal(process->nr_samples, 1000);
	assert_in_range(process->nr_points, MEMORY_MAX_POINTS / 2, MEMORY_MAX_POINTS);
	for (size_t i = 0; i < process->nr_points; i++)
		assert_int_equal(process->points[i].time_ns, (i * process->step + 1) * S);
	assert_int_equal(process->peak.time_ns, 701 * S);
	assert_int_equal(process->last.time_ns, 1000 * S);
	/* leakrec was killed: it recorded until then at least. */
	assert_int_equal(analysis.end_ns, 1000 * S);
	analysis_deinit(&analysis);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(growth_is_divided),
		cmocka_unit_test(growth_in_windows_is_not_divided),
		cmocka_unit_test(memory_that_was_mapped_before),
		cmocka_unit_test(a_started_command_is_not_older),
		cmocka_unit_test(mappings_that_were_recorded),
		cmocka_unit_test(memory_that_the_allocator_keeps),
		cmocka_unit_test(blocks_that_are_not_used),
		cmocka_unit_test(memory_that_shrank),
		cmocka_unit_test(processes_that_come_and_go),
		cmocka_unit_test(a_process_that_ended_before_the_recording),
		cmocka_unit_test(too_little_is_known),
		cmocka_unit_test(recordings_of_a_session),
		cmocka_unit_test(hostile_numbers_do_no_harm),
		cmocka_unit_test(memory_has_a_bound),
		cmocka_unit_test(ended_processes_make_room),
		cmocka_unit_test(points_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
