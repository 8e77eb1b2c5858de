/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The gate's table of processes, as the BPF programs and the recorder use it, and what the guard
 * does with it.
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
	*state = mmap(NULL, sizeof(struct gate_shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(*state, MAP_FAILED);
	return 0;
}

static int teardown(void **state)
{
	return munmap(*state, sizeof(struct gate_shared));
}

/* The @nth process id after @tgid that is looked for at the same place. */
static unsigned int same_slot(unsigned int tgid, int nth)
{
	unsigned int slot = gate_target_slot(tgid);

	while (nth > 0)
		nth -= gate_target_slot(++tgid) == slot;
	return tgid;
}

static void removed_entries_are_nobody(void **state)
{
	struct gate_shared *shared = *state;
	unsigned int tgid = same_slot(GATE_INIT, 1);

	assert_non_null(gate_table_add(shared, tgid));
	gate_table_remove(shared, tgid);
	assert_null(gate_table_find(shared, tgid));
	/* Whose children are everybody's orphans. */
	for (unsigned int init = 0; init <= GATE_INIT; init++) {
		assert_null(gate_table_find(shared, init));
		assert_null(gate_table_add(shared, init));
	}
	for (size_t i = 0; i < GATE_MAX_TARGETS; i++)
		assert_false(gate_is_process(shared->targets[i].tgid));
	/* No id of 32 bits is what stands for none. */
	assert_null(gate_table_find(shared, UINT32_MAX));
	assert_null(gate_table_find(shared, UINT32_MAX - 1));
}

static void removed_entries_are_used_again(void **state)
{
	struct gate_shared *shared = *state;
	unsigned int first = same_slot(PID, 0), second = same_slot(PID, 1),
		     third = same_slot(PID, 2);
	struct gate_target *target = gate_table_add(shared, first);

	assert_non_null(gate_table_add(shared, second));
	target->job_stopped = target->linked = 1;
	target->role = GATE_SPARED;
	gate_table_remove(shared, first);
	/* Behind a removed entry, each is found, and is not added twice. */
	assert_ptr_equal(gate_table_add(shared, second), gate_table_find(shared, second));
	assert_ptr_not_equal(gate_table_find(shared, second), target);
	/* What somebody marked just after it was removed is not the next one's. */
	target->job_stopped = 1;
	assert_ptr_equal(gate_table_add(shared, third), target);
	assert_int_equal(target->job_stopped, 0);
	assert_int_equal(target->linked, 0);
	assert_int_equal(target->role, GATE_RECORDED);
}

/* Two threads may add their process at once. */
static void all_entries_of_a_process_are_removed(void **state)
{
	struct gate_shared *shared = *state;
	unsigned int slot = gate_target_slot(PID);

	for (unsigned int i = 0; i < 3; i++)
		shared->targets[(slot + i) & (GATE_MAX_TARGETS - 1)].tgid = PID;
	gate_table_remove(shared, PID);
	assert_null(gate_table_find(shared, PID));
	assert_non_null(gate_table_add(shared, same_slot(PID, 1)));
	assert_null(gate_table_find(shared, PID));
}

static void a_full_table_adds_nobody(void **state)
{
	struct gate_shared *shared = *state;

	for (int i = 0; i < GATE_MAX_PROBES; i++)
		assert_non_null(gate_table_add(shared, same_slot(PID, i)));
	assert_null(gate_table_add(shared, same_slot(PID, GATE_MAX_PROBES)));
	assert_null(gate_table_find(shared, same_slot(PID, GATE_MAX_PROBES)));
}

/* A child that only waits, and is stopped; a target of @shared. */
static struct gate_target *stopped_child(struct gate_shared *shared, pid_t *ret)
{
	pid_t pid = fork();
	struct gate_target *target;
	int status;

	if (pid == 0)
		for (;;)
			pause();
	assert_true(pid > 0);
	kill(pid, SIGSTOP);
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_true(WIFSTOPPED(status));
	target = gate_table_add(shared, (unsigned int)pid);
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
	struct gate_shared *shared = *state;
	pid_t pid;
	struct gate_target *target = stopped_child(shared, &pid);

	guard_continue_overdue(shared, target->stopped_ns + SECOND_NS / 2);
	assert_false(has_continued(pid));
	assert_int_equal(shared->overdue, 0);
	guard_continue_overdue(shared, target->stopped_ns + GATE_MAX_STOP_NS - 1);
	assert_true(has_continued(pid));
	assert_int_equal(shared->overdue, 1);
	assert_false(guard_has_stopped(shared));
	end_child(pid);
}

static void set_up_work_has_a_limit_of_its_own(void **state)
{
	struct gate_shared *shared = *state;
	pid_t pid;
	struct gate_target *target = stopped_child(shared, &pid);

	target->set_up = 1;
	target->forks = GATE_FORKS_WANTED;
	shared->any_stopped = 1;
	guard_continue_targets(shared, false);
	guard_continue_overdue(shared, target->stopped_ns + GATE_MAX_STOP_NS);
	assert_false(has_continued(pid));
	guard_continue_overdue(shared, target->stopped_ns + GATE_MAX_SET_UP_NS - 1);
	assert_true(has_continued(pid));
	assert_int_equal(shared->overdue, 0);
	assert_int_equal(shared->set_up_overdue, 1);
	assert_int_equal(shared->missed, 1);
	end_child(pid);
}

static void others_stops_stay(void **state)
{
	struct gate_shared *shared = *state;
	pid_t pid;
	struct gate_target *target = stopped_child(shared, &pid);

	target->job_stopped = 1;
	shared->any_stopped = 1;
	guard_continue_targets(shared, true);
	assert_false(has_continued(pid));
	assert_false(guard_has_stopped(shared));
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
