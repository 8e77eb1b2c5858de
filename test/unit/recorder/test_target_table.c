/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Backpressure's table of processes, as the BPF programs and the recorder use it, and what the
 * watchdog does with it.
 */
#include "common/clock.h"
#include "recorder/target_table/target_table.h"
#include "recorder/backpressure/watchdog.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define PID	  4165
#define SECOND_NS 1000000000ULL

static int setup(void **state)
{
	*state = mmap(NULL, sizeof(struct target_table), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(*state, MAP_FAILED);
	return 0;
}

static int teardown(void **state)
{
	return munmap(*state, sizeof(struct target_table));
}

/* The @nth process id after @tgid that is looked for at the same place. */
static unsigned int same_slot(unsigned int tgid, int nth)
{
	unsigned int slot = target_slot(tgid);

	while (nth > 0)
		nth -= target_slot(++tgid) == slot;
	return tgid;
}

static void removed_entries_are_nobody(void **state)
{
	struct target_table *shared = *state;
	unsigned int tgid = same_slot(TARGET_INIT, 1);

	assert_non_null(target_table_add(shared, tgid));
	target_table_remove(shared, tgid);
	assert_null(target_table_find(shared, tgid));
	/* Whose children are everybody's orphans. */
	for (unsigned int init = 0; init <= TARGET_INIT; init++) {
		assert_null(target_table_find(shared, init));
		assert_null(target_table_add(shared, init));
	}
	for (size_t i = 0; i < TARGET_TABLE_SIZE; i++)
		assert_false(target_is_process(shared->targets[i].tgid));
	/* No id of 32 bits is what stands for none. */
	assert_null(target_table_find(shared, UINT32_MAX));
	assert_null(target_table_find(shared, UINT32_MAX - 1));
}

static void removed_entries_are_used_again(void **state)
{
	struct target_table *shared = *state;
	unsigned int first = same_slot(PID, 0), second = same_slot(PID, 1),
		     third = same_slot(PID, 2);
	struct target *target = target_table_add(shared, first);

	assert_non_null(target_table_add(shared, second));
	target->job_stopped = target->linked = 1;
	target->role = TARGET_SPARED;
	target_table_remove(shared, first);
	/* Behind a removed entry, each is found, and is not added twice. */
	assert_ptr_equal(target_table_add(shared, second), target_table_find(shared, second));
	assert_ptr_not_equal(target_table_find(shared, second), target);
	/* What somebody marked just after it was removed is not the next one's. */
	target->job_stopped = 1;
	assert_ptr_equal(target_table_add(shared, third), target);
	assert_int_equal(target->job_stopped, 0);
	assert_int_equal(target->linked, 0);
	assert_int_equal(target->role, TARGET_RECORDED);
}

/* Two threads may add their process at once. */
static void all_entries_of_a_process_are_removed(void **state)
{
	struct target_table *shared = *state;
	unsigned int slot = target_slot(PID);

	for (unsigned int i = 0; i < 3; i++)
		shared->targets[(slot + i) & (TARGET_TABLE_SIZE - 1)].tgid = PID;
	target_table_remove(shared, PID);
	assert_null(target_table_find(shared, PID));
	assert_non_null(target_table_add(shared, same_slot(PID, 1)));
	assert_null(target_table_find(shared, PID));
}

static void a_full_table_adds_nobody(void **state)
{
	struct target_table *shared = *state;

	for (int i = 0; i < TARGET_MAX_SEARCH; i++)
		assert_non_null(target_table_add(shared, same_slot(PID, i)));
	assert_null(target_table_add(shared, same_slot(PID, TARGET_MAX_SEARCH)));
	assert_null(target_table_find(shared, same_slot(PID, TARGET_MAX_SEARCH)));
}

/* A child that only waits, and is stopped; a target of @shared. */
static struct target *stopped_child(struct target_table *shared, pid_t *ret)
{
	pid_t pid = fork();
	struct target *target;
	int status;

	if (pid == 0)
		for (;;)
			pause();
	assert_true(pid > 0);
	kill(pid, SIGSTOP);
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_true(WIFSTOPPED(status));
	target = target_table_add(shared, (unsigned int)pid);
	assert_non_null(target);
	target->stopped = 1;
	target->stopped_ns = clock_now_ns();
	*ret = pid;
	return target;
}

static bool has_continued(pid_t pid)
{
	int status;

	return waitpid(pid, &status, WCONTINUED | WNOHANG) == pid && WIFCONTINUED(status);
}

static void end_child(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void the_guard_ends_stops_in_time(void **state)
{
	struct target_table *shared = *state;
	pid_t pid;
	struct target *target = stopped_child(shared, &pid);

	watchdog_continue_overdue(shared, target->stopped_ns + SECOND_NS / 2);
	assert_false(has_continued(pid));
	assert_int_equal(shared->overdue, 0);
	watchdog_continue_overdue(shared, target->stopped_ns + TARGET_MAX_STOP_NS - 1);
	assert_true(has_continued(pid));
	assert_int_equal(shared->overdue, 1);
	assert_false(watchdog_has_stopped(shared));
	end_child(pid);
}

static void set_up_work_has_a_limit_of_its_own(void **state)
{
	struct target_table *shared = *state;
	pid_t pid;
	struct target *target = stopped_child(shared, &pid);

	target->set_up = 1;
	target->forks = TARGET_FORKS_WANTED;
	shared->any_stopped = 1;
	watchdog_continue_targets(shared, false);
	/* On a slow machine, to register and open the events of a first fork takes seconds. */
	watchdog_continue_overdue(shared, target->stopped_ns + 4 * SECOND_NS);
	assert_false(has_continued(pid));
	watchdog_continue_overdue(shared, target->stopped_ns + TARGET_MAX_SET_UP_NS - 1);
	assert_true(has_continued(pid));
	assert_int_equal(shared->overdue, 0);
	assert_int_equal(shared->set_up_overdue, 1);
	assert_int_equal(shared->missed, 1);
	assert_int_equal(shared->nr_set_up_late, 1);
	end_child(pid);
}

static void others_stops_stay(void **state)
{
	struct target_table *shared = *state;
	pid_t pid;
	struct target *target = stopped_child(shared, &pid);

	target->job_stopped = 1;
	shared->any_stopped = 1;
	watchdog_continue_targets(shared, true);
	assert_false(has_continued(pid));
	assert_false(watchdog_has_stopped(shared));
	end_child(pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(removed_entries_are_nobody, setup, teardown),
		cmocka_unit_test_setup_teardown(removed_entries_are_used_again, setup, teardown),
		cmocka_unit_test_setup_teardown(all_entries_of_a_process_are_removed, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_full_table_adds_nobody, setup, teardown),
		cmocka_unit_test_setup_teardown(the_guard_ends_stops_in_time, setup, teardown),
		cmocka_unit_test_setup_teardown(set_up_work_has_a_limit_of_its_own, setup,
						teardown),
		cmocka_unit_test_setup_teardown(others_stops_stay, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
