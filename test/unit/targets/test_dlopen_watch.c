/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files that may have gone unseen, because the kernel has skipped the programs that notice them. */
#include "recorder/targets/dlopen_watch.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include <cmocka.h>

#define FIRST_PID  1000
#define NR_TARGETS 200
#define MS	   1000000ULL
#define LOOK_NS	   MS /* a process */

static uint64_t now_ns, thread_ns;
static struct target_table *table;
static bool is_system_wide, is_stopping;
static uint64_t nr_skipped, nr_notes;

/* What the search has looked at; the process that it fails at, that has one more file, or always.
 */
static unsigned int nr_looks[NR_TARGETS];
static pid_t failing, longer, endless, finds_at;

/* In place of the C library's: each look takes its time, however busy the machine is. */
int clock_gettime(clockid_t clock, struct timespec *ret)
{
	uint64_t ns = clock == CLOCK_THREAD_CPUTIME_ID ? thread_ns : now_ns;

	*ret = (struct timespec){(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
	return 0;
}

int sigpending(sigset_t *ret)
{
	sigemptyset(ret);
	if (is_stopping)
		sigaddset(ret, SIGINT);
	return 0;
}

/* In place of bpf_recorder.c, which has the programs' memory. */
uint64_t bpf_recorder_nr_skipped(const struct bpf_recorder *recorder, enum skip_cost cost)
{
	return cost == SKIP_COSTS_FILES ? nr_skipped : 0;
}

void bpf_recorder_note_skipped(struct bpf_recorder *recorder)
{
	nr_notes++;
}

int bpf_recorder_add_late(struct bpf_recorder *recorder, const struct probe_file *file)
{
	fail_msg("a file is linked");
	return -EINVAL;
}

void bpf_recorder_know_code(struct bpf_recorder *recorder, pid_t pid, uint64_t pages)
{
}

void bpf_recorder_know_file(struct bpf_recorder *recorder, const struct bpf_file *file,
			    const struct bpf_file_version *version)
{
}

void bpf_recorder_forget_file(struct bpf_recorder *recorder, const struct bpf_file *file)
{
}

/* In place of backpressure.c. */
struct target_table *backpressure_table(const struct backpressure *backpressure)
{
	return table;
}

bool backpressure_is_system_wide(const struct backpressure *backpressure)
{
	return is_system_wide;
}

/* In place of allocator_search.c. */
static int find_file(struct probe_set *set)
{
	set->files = calloc(1, sizeof(*set->files));
	assert_non_null(set->files);
	set->files[0] = (struct probe_file){.fd = -1, .display = strdup("")};
	set->nr_files = 1;
	return 0;
}

int allocator_search_process(struct allocator_search *search, pid_t pid, struct probe_set *set)
{
	now_ns += LOOK_NS;
	thread_ns += LOOK_NS;
	nr_looks[pid - FIRST_PID]++;
	if (pid == failing)
		return -ENOMEM;
	if (pid == finds_at)
		return find_file(set);
	return pid == endless || (pid == longer && nr_looks[pid - FIRST_PID] == 1);
}

void allocator_search_limit(struct allocator_search *search,
			    const struct allocator_search_limits *limits)
{
}

void allocator_search_forget(struct allocator_search *search, const struct stat *stat)
{
}

bool allocator_search_next(struct allocator_search *search, struct stat *ret)
{
	return false;
}

struct fixture {
	struct bpf_recorder recorder;
	struct file_leases leases;
	struct dlopen_watch watch;
};

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	assert_non_null(fixture);
	*state = fixture;
	table = mmap(NULL, sizeof(*table), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		     0);
	assert_ptr_not_equal(table, MAP_FAILED);
	for (unsigned int i = 0; i < NR_TARGETS; i++)
		assert_non_null(target_table_add(table, FIRST_PID + i));
	memset(nr_looks, 0, sizeof(nr_looks));
	now_ns = thread_ns = 10000 * MS;
	nr_skipped = nr_notes = 0;
	is_system_wide = is_stopping = false;
	failing = longer = endless = finds_at = 0;
	fixture->leases.fd = -1;
	dlopen_watch_init(&fixture->watch, &fixture->recorder, NULL, NULL, &fixture->leases);
	/* A round without a skip. */
	dlopen_watch_serve(&fixture->watch);
	nr_skipped = 1;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	dlopen_watch_deinit(&fixture->watch);
	free(fixture);
	return munmap(table, sizeof(*table));
}

static unsigned int sum_of_looks(void)
{
	unsigned int sum = 0;

	for (size_t i = 0; i < NR_TARGETS; i++)
		sum += nr_looks[i];
	return sum;
}

/* Rounds for @ms. The most that one of them took is *@ret_most_ns of CPU time. */
static void run_rounds(struct dlopen_watch *watch, unsigned int ms, uint64_t *ret_most_ns)
{
	uint64_t end_ns = now_ns + ms * MS;

	*ret_most_ns = 0;
	while (now_ns < end_ns) {
		uint64_t before_ns = thread_ns;

		dlopen_watch_serve(watch);
		if (thread_ns - before_ns > *ret_most_ns)
			*ret_most_ns = thread_ns - before_ns;
		now_ns += MS;
	}
}

static void each_is_looked_at_in_slices(void **state)
{
	struct fixture *fixture = *state;
	uint64_t most_ns, before_ns;

	now_ns += 1001 * MS;
	before_ns = thread_ns;
	run_rounds(&fixture->watch, 1000, &most_ns);
	assert_in_range(most_ns, LOOK_NS, 15 * MS);
	/* A tenth of a CPU, and the first slice. */
	assert_in_range(thread_ns - before_ns, 50 * MS, 115 * MS);
	run_rounds(&fixture->watch, 5000, &most_ns);
	for (size_t i = 0; i < NR_TARGETS; i++)
		assert_int_equal(nr_looks[i], 1);
	assert_int_equal(nr_notes, 0);
	assert_int_equal(table->missed, 0);
	dlopen_watch_end(&fixture->watch);
	assert_int_equal(sum_of_looks(), NR_TARGETS);
	assert_int_equal(nr_notes, 0);
}

static void looks_keep_to_their_share(void **state)
{
	struct fixture *fixture = *state;
	uint64_t most_ns, before_ns = thread_ns;

	fixture->watch.share = 0.001;
	now_ns += 1001 * MS;
	run_rounds(&fixture->watch, 5000, &most_ns);
	assert_in_range(thread_ns - before_ns, LOOK_NS, 15 * MS);
}

static void a_signal_ends_the_looks(void **state)
{
	struct fixture *fixture = *state;

	now_ns += 1001 * MS;
	is_stopping = true;
	dlopen_watch_serve(&fixture->watch);
	assert_int_equal(sum_of_looks(), 0);
	/* For a short time, all the same; then it tells that this was not enough. */
	dlopen_watch_end(&fixture->watch);
	assert_in_range(sum_of_looks(), 100, 110);
	assert_int_equal(nr_notes, 1);
}

static void failed_looks_are_told(void **state)
{
	struct fixture *fixture = *state;
	uint64_t most_ns;

	failing = FIRST_PID + 7;
	longer = FIRST_PID + 8;
	now_ns += 1001 * MS;
	run_rounds(&fixture->watch, 5000, &most_ns);
	assert_int_equal(nr_looks[7], 1);
	assert_int_equal(nr_looks[8], 2);
	assert_int_equal(sum_of_looks(), NR_TARGETS + 1);
	assert_int_equal(table->missed, 1);
}

/* One process maps new files all the time. The others do not wait for it. */
static void an_endless_process_keeps_no_other(void **state)
{
	struct fixture *fixture = *state;
	uint64_t most_ns;

	endless = FIRST_PID + 7;
	now_ns += 1001 * MS;
	run_rounds(&fixture->watch, 10000, &most_ns);
	assert_in_range(most_ns, LOOK_NS, 15 * MS);
	for (size_t i = 0; i < NR_TARGETS; i++)
		assert_true(nr_looks[i] > 0);
	/* No walk was complete. */
	assert_int_equal(nr_notes, 0);
	dlopen_watch_end(&fixture->watch);
	assert_int_equal(nr_notes, 1);
}

/* Walks through all targets after @nr_skipped skips. Returns true if something may be missing. */
static bool may_miss_after(struct dlopen_watch *watch, uint64_t new_nr_skipped)
{
	uint64_t most_ns, nr_before = nr_notes;

	nr_skipped = new_nr_skipped;
	run_rounds(watch, 5000, &most_ns);
	return nr_notes > nr_before;
}

static void who_has_gone_is_not_looked_at(void **state)
{
	struct fixture *fixture = *state;

	assert_false(may_miss_after(&fixture->watch, 1));
	/* Without a skip, that is nothing. */
	target_table_remove(table, FIRST_PID);
	assert_false(may_miss_after(&fixture->watch, 1));
	assert_false(may_miss_after(&fixture->watch, 2));
	target_table_remove(table, FIRST_PID + 1);
	assert_true(may_miss_after(&fixture->watch, 3));
	assert_false(may_miss_after(&fixture->watch, 4));
	/* An exec, as after_exec() counts it. */
	table->nr_gone++;
	assert_true(may_miss_after(&fixture->watch, 5));
	/* One that was noticed later than it should have been. */
	fixture->watch.nr_recorded++;
	assert_true(may_miss_after(&fixture->watch, 6));
	assert_false(may_miss_after(&fixture->watch, 7));
}

static void not_all_have_an_entry(void **state)
{
	struct fixture *fixture = *state;

	is_system_wide = true;
	assert_true(may_miss_after(&fixture->watch, 1));
}

static void the_end_links_nothing(void **state)
{
	struct fixture *fixture = *state;

	for (unsigned int i = 5; i < NR_TARGETS; i++)
		target_table_remove(table, FIRST_PID + i);
	now_ns += 1001 * MS;
	dlopen_watch_serve(&fixture->watch);
	nr_notes = 0;
	nr_skipped = 2;
	dlopen_watch_end(&fixture->watch);
	assert_int_equal(nr_notes, 0);
	finds_at = FIRST_PID + 2;
	nr_skipped = 3;
	dlopen_watch_end(&fixture->watch);
	assert_int_equal(nr_notes, 1);
	assert_int_equal(nr_looks[4], 3);
	/* Rounds that drain the rings follow. */
	nr_skipped = 4;
	now_ns += 2000 * MS;
	dlopen_watch_serve(&fixture->watch);
	assert_int_equal(nr_looks[4], 3);
}

/* The last rounds and the writer may take longer than a stop may last. */
static void none_waits_after_the_end(void **state)
{
	struct fixture *fixture = *state;
	struct target *target = target_table_find(table, FIRST_PID + 1);

	target->stopped = target->set_up = target->has_mapped = table->any_mapped = 1;
	dlopen_watch_end(&fixture->watch);
	assert_false(target_waits(target));
	assert_int_equal(table->any_stopped, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(each_is_looked_at_in_slices, set_up, tear_down),
		cmocka_unit_test_setup_teardown(looks_keep_to_their_share, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_signal_ends_the_looks, set_up, tear_down),
		cmocka_unit_test_setup_teardown(failed_looks_are_told, set_up, tear_down),
		cmocka_unit_test_setup_teardown(an_endless_process_keeps_no_other, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(who_has_gone_is_not_looked_at, set_up, tear_down),
		cmocka_unit_test_setup_teardown(not_all_have_an_entry, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_end_links_nothing, set_up, tear_down),
		cmocka_unit_test_setup_teardown(none_waits_after_the_end, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
