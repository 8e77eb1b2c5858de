/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The target table, as BPF programs, the recorder and the watchdog use it.
 */
#include "common/clock.h"
#include "common/proc/process_stat.h"
#include "recorder/target_table/target_table.h"

#include <linux/sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define PID 4165

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

/* The @nth process id after @tgid whose search starts at the same slot. */
static unsigned int same_slot(unsigned int tgid, int nth)
{
	unsigned int slot = target_slot(tgid);

	while (nth > 0)
		nth -= target_slot(++tgid) == slot;
	return tgid;
}

static void removed_entries_are_no_process(void **state)
{
	struct target_table *table = *state;
	unsigned int tgid = same_slot(TARGET_INIT, 1);

	assert_non_null(target_table_add(table, tgid));
	target_table_remove(table, tgid);
	assert_null(target_table_find(table, tgid));
	/* init adopts orphans of every origin. */
	for (unsigned int init = 0; init <= TARGET_INIT; init++) {
		assert_null(target_table_find(table, init));
		assert_null(target_table_add(table, init));
	}
	for (size_t i = 0; i < TARGET_TABLE_SIZE; i++)
		assert_false(target_is_process(table->targets[i].tgid));
	/* No id of 32 bits equals a special value. */
	assert_null(target_table_find(table, UINT32_MAX));
	assert_null(target_table_find(table, UINT32_MAX - 1));
}

static void removed_entries_are_used_again(void **state)
{
	struct target_table *table = *state;
	unsigned int first = same_slot(PID, 0), second = same_slot(PID, 1),
		     third = same_slot(PID, 2);
	struct target *target = target_table_add(table, first);

	assert_non_null(target_table_add(table, second));
	target->job_stopped = target->linked = 1;
	target->role = TARGET_SPARED;
	target_table_remove(table, first);
	/* Entries after a removed one are found, and not added twice. */
	assert_ptr_equal(target_table_add(table, second), target_table_find(table, second));
	assert_ptr_not_equal(target_table_find(table, second), target);
	/* A mark that is set just after the removal does not count for the next process. */
	target->job_stopped = 1;
	assert_ptr_equal(target_table_add(table, third), target);
	assert_int_equal(target->job_stopped, 0);
	assert_int_equal(target->linked, 0);
	assert_int_equal(target->role, TARGET_RECORDED);
}

/* Two threads may add their process at once. */
static void all_entries_of_a_process_are_removed(void **state)
{
	struct target_table *table = *state;
	unsigned int slot = target_slot(PID);

	for (unsigned int i = 0; i < 3; i++)
		table->targets[(slot + i) & (TARGET_TABLE_SIZE - 1)].tgid = PID;
	target_table_remove(table, PID);
	assert_null(target_table_find(table, PID));
	assert_non_null(target_table_add(table, same_slot(PID, 1)));
	assert_null(target_table_find(table, PID));
}

static void a_full_table_adds_nothing(void **state)
{
	struct target_table *table = *state;

	for (int i = 0; i < TARGET_MAX_SEARCH; i++)
		assert_non_null(target_table_add(table, same_slot(PID, i)));
	assert_null(target_table_add(table, same_slot(PID, TARGET_MAX_SEARCH)));
	assert_null(target_table_find(table, same_slot(PID, TARGET_MAX_SEARCH)));
}

/* Ids as a machine has them that has run for long: anywhere below the highest one of 64 bits. */
#define MAX_PID	     4194304
#define NR_PROCESSES 1000

static void a_thousand_processes_have_room(void **state)
{
	struct target_table *table = *state;
	size_t nr_added = 0, nr_met = 0;
	uint32_t random = 1;

	while (nr_added < NR_PROCESSES) {
		unsigned int pid;

		random = random * 1664525 + 1013904223;
		pid = random % (MAX_PID - 300) + 300;
		if (target_table_find(table, pid))
			continue;
		assert_true(target_table_add_process(table, (pid_t)pid, true));
		assert_non_null(target_table_find(table, pid));
		nr_added++;
	}
	for (struct target *target = NULL; (target = target_table_next(table, target));)
		nr_met++;
	assert_int_equal(nr_met, NR_PROCESSES);
}

/* Ids with the same distance, as where each service starts the same helpers. */
static void so_have_processes_of_evenly_spaced_ids(void **state)
{
	struct target_table *table = *state;

	for (unsigned int step = 1; step <= 256; step++) {
		memset(table, 0, sizeof(*table));
		for (unsigned int i = 0; i < NR_PROCESSES; i++)
			assert_non_null(target_table_add(table, 300 + i * step));
	}
}

static void who_has_no_room_is_told(void **state)
{
	struct target_table *table = *state;

	for (int i = 0; i < TARGET_MAX_SEARCH; i++)
		assert_true(target_table_add_process(table, (pid_t)same_slot(PID, i), true));
	assert_false(
		target_table_add_process(table, (pid_t)same_slot(PID, TARGET_MAX_SEARCH), true));
	/* That is not what went on too soon. */
	assert_int_equal(table->missed, 0);
}

static void __attribute__((noreturn)) wait_forever(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		pause();
}

/* A child that only waits, and is stopped; a target of @table. */
static struct target *stopped_child(struct target_table *table, pid_t *ret)
{
	pid_t pid = fork();
	struct target *target;
	int status;

	if (pid == 0)
		wait_forever();
	assert_true(pid > 0);
	kill(pid, SIGSTOP);
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_true(WIFSTOPPED(status));
	target = target_table_add(table, (unsigned int)pid);
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

static void overdue_stops_end(void **state)
{
	struct target_table *table = *state;
	pid_t pid;
	struct target *target = stopped_child(table, &pid);

	target_table_continue_overdue(table, target->stopped_ns + TARGET_MAX_STOP_NS - 1);
	assert_false(has_continued(pid));
	assert_int_equal(table->overdue, 0);
	target_table_continue_overdue(table, target->stopped_ns + TARGET_MAX_STOP_NS);
	assert_true(has_continued(pid));
	assert_int_equal(table->overdue, 1);
	assert_false(target_table_has_stopped(table));
	end_child(pid);
}

static void set_up_work_has_a_limit_of_its_own(void **state)
{
	struct target_table *table = *state;
	pid_t pid;
	struct target *target = stopped_child(table, &pid);

	target->set_up = 1;
	target->forks = TARGET_FORKS_WANTED;
	table->any_stopped = 1;
	target_table_continue_ready(table);
	/* On a slow machine, the events of a first fork take seconds to register and open. */
	assert_true(TARGET_MAX_SET_UP_NS > 4 * TARGET_MAX_STOP_NS);
	target_table_continue_overdue(table, target->stopped_ns + TARGET_MAX_SET_UP_NS - 1);
	assert_false(has_continued(pid));
	target_table_continue_overdue(table, target->stopped_ns + TARGET_MAX_SET_UP_NS);
	assert_true(has_continued(pid));
	assert_int_equal(table->overdue, 0);
	assert_int_equal(table->set_up_overdue, 1);
	assert_int_equal(table->missed, 1);
	assert_int_equal(table->nr_set_up_late, 1);
	end_child(pid);
}

/* Rings of 64 KiB, and a target that has filled @steps since the table began. */
static struct target *filler(struct target_table *table, unsigned int tgid, unsigned int steps)
{
	struct target *target = target_table_add(table, tgid);

	if (!table->limit_bytes) {
		target_table_set_limit(table, 32768);
		target_table_prefer_fillers(table, 65536);
	}
	target->steps = steps;
	return target;
}

static void those_that_fill_the_rings_may_be_stopped_first(void **state)
{
	struct target_table *table = *state;
	struct target *large = filler(table, PID, 400), *small = filler(table, PID + 1, 40);
	struct target *tiny = filler(table, PID + 2, TARGET_MIN_FILLER_STEPS - 1);

	/* Two processes have filled as much as a third one cannot reach. */
	target_table_find_fillers(table, table->window_ns + 1);
	assert_true(target_may_pause(table, large, 32769));
	assert_false(target_may_pause(table, small, 49152));
	assert_true(target_may_pause(table, small, 49153));
	/* It may be stopped for a part of the window, the other one for all of it. */
	large->paused_ns = small->paused_ns = TARGET_MAX_OTHER_STOP_NS;
	assert_true(target_may_pause(table, large, 32769));
	assert_false(target_may_pause(table, small, 65536));
	target_table_find_fillers(table, table->window_ns + TARGET_WINDOW_NS);
	assert_true(target_may_pause(table, small, 65536));
	/* What was filled two windows ago does not count any more. */
	target_table_find_fillers(table, table->window_ns + TARGET_WINDOW_NS);
	small->steps += TARGET_MIN_FILLER_STEPS;
	target_table_find_fillers(table, table->window_ns + 1);
	assert_false(target_may_pause(table, large, 32769));
	assert_true(target_may_pause(table, small, 32769));
	assert_false(target_may_pause(table, tiny, 32769));
}

static void all_targets_are_alike_if_they_are_named(void **state)
{
	struct target_table *table = *state;

	target_table_set_limit(table, 32768);
	target_table_find_fillers(table, clock_now_ns());
	assert_true(target_is_filler(table, target_table_add(table, PID)));
}

static void a_stop_of_others_has_a_limit_of_its_own(void **state)
{
	struct target_table *table = *state;
	pid_t pid;
	struct target *target = stopped_child(table, &pid);

	filler(table, (unsigned int)pid, 1);
	target->paused_ns = TARGET_MAX_OTHER_STOP_NS / 2;
	target_table_continue_overdue(table, target->stopped_ns + TARGET_MAX_OTHER_STOP_NS / 2 - 1);
	assert_false(has_continued(pid));
	target_table_continue_overdue(table, target->stopped_ns + TARGET_MAX_OTHER_STOP_NS / 2);
	assert_true(has_continued(pid));
	/* Fillers may be stopped all the same. */
	assert_int_equal(table->overdue, 0);
	end_child(pid);
}

static void who_fills_the_rings_for_long_is_told(void **state)
{
	struct target_table *table = *state;
	struct target *target = filler(table, PID, 0);

	for (int i = 0; i < TARGET_STRAINED_WINDOWS; i++) {
		assert_int_equal(table->strained_tgid, 0);
		target->steps += 100;
		target->paused_ns = TARGET_STRAINED_STOP_NS;
		target_table_find_fillers(table, table->window_ns + TARGET_WINDOW_NS);
	}
	assert_int_equal(table->strained_tgid, PID);
}

static void stops_by_others_stay(void **state)
{
	struct target_table *table = *state;
	pid_t pid;
	struct target *target = stopped_child(table, &pid);

	target->job_stopped = 1;
	target_table_continue_all(table);
	assert_false(has_continued(pid));
	assert_false(target_table_has_stopped(table));
	end_child(pid);
}

static uint64_t start_time(pid_t pid)
{
	struct process_stat status;

	assert_int_equal(process_stat_read(pid, &status), 0);
	return status.start_time_ticks;
}

/* True if the child @pid stops by @number, for which nobody has to wait a minute. */
static bool is_stopped_by(pid_t pid, int number)
{
	int status = 0;

	for (int i = 0; i < 6000 && waitpid(pid, &status, WUNTRACED | WNOHANG) == 0; i++)
		usleep(10000);
	return WIFSTOPPED(status) && WSTOPSIG(status) == number;
}

/* The kernel discards them at SIGCONT. */
static void stops_that_may_be_handled_are_sent_again(void **state)
{
	struct target_table *table = *state;
	pid_t pid;
	struct target *target = stopped_child(table, &pid);

	/* In an orphaned group they would not stop it. */
	assert_int_equal(setpgid(pid, pid), 0);
	kill(pid, SIGTSTP);
	target->tty_stops = 1;
	target_table_continue_all(table);
	assert_true(is_stopped_by(pid, SIGTSTP));
	/* Once only. */
	target->stopped = 1;
	target_table_continue_all(table);
	assert_true(has_continued(pid));
	/* Without programs, it is not known who got some. */
	target_table_set_blind(table);
	target_set_start_time(target, start_time(pid));
	target_table_stop(table, target);
	assert_true(is_stopped_by(pid, SIGSTOP));
	kill(pid, SIGTTIN);
	target_table_continue_all(table);
	assert_true(is_stopped_by(pid, SIGTTIN));
	end_child(pid);
}

/* A child with the id @pid that only waits. */
static pid_t child_with_id(pid_t pid)
{
	struct clone_args args = {
		.exit_signal = SIGCHLD,
		.set_tid = (uint64_t)(uintptr_t)&pid,
		.set_tid_size = 1,
	};
	pid_t child = (pid_t)syscall(SYS_clone3, &args, sizeof(args));

	if (child == 0)
		wait_forever();
	return child;
}

/*
 * Replaces the process @pid, a child, by another one that has its id, and that began a clock tick
 * later or more. Returns false if this user may not choose ids.
 */
static bool replace_child(pid_t pid)
{
	uint64_t before = start_time(pid);

	do {
		end_child(pid);
		if (child_with_id(pid) != pid)
			return false;
	} while (start_time(pid) == before);
	return true;
}

/* A child that the table has stopped, and that no program watches. */
static pid_t child_stopped_blindly(struct target_table *table)
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		wait_forever();
	target_table_set_blind(table);
	target_table_add_process(table, pid, false);
	target_table_stop(table, target_table_find(table, (unsigned int)pid));
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_true(WIFSTOPPED(status));
	return pid;
}

static void a_later_process_of_the_id_gets_no_signal(void **state)
{
	struct target_table *table = *state;
	struct target *target;
	pid_t pid = child_stopped_blindly(table);
	int status;

	target = target_table_find(table, (unsigned int)pid);
	target_table_continue_all(table);
	assert_int_equal(waitpid(pid, &status, WCONTINUED), pid);
	if (!replace_child(pid))
		skip();
	target_table_stop(table, target);
	/* It is stopped by somebody else, and stays stopped. */
	kill(pid, SIGSTOP);
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_true(target_table_has_stopped(table));
	target_table_continue_all(table);
	assert_false(has_continued(pid));
	assert_false(target_table_has_stopped(table));
	kill(pid, SIGCONT);
	assert_int_equal(waitpid(pid, &status, WCONTINUED), pid);
	target_table_stop(table, target);
	/* A stop would come first: its number is lower. */
	kill(pid, SIGRTMIN);
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_true(WIFSIGNALED(status));
}

static void a_process_is_continued_without_descriptors(void **state)
{
	struct target_table *table = *state;
	struct rlimit before, none;
	pid_t pid = child_stopped_blindly(table);

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = (struct rlimit){0, before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	target_table_continue_all(table);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_true(has_continued(pid));
	end_child(pid);
}

static void carriers_are_added_once_and_removed(void **state)
{
	struct target *target = target_table_add(*state, PID);

	assert_false(target_has_carrier(target));
	for (pid_t tid = PID; tid < PID + TARGET_MAX_CARRIERS; tid++) {
		assert_true(target_add_carrier(target, tid));
		assert_false(target_add_carrier(target, tid));
	}
	assert_false(target_add_carrier(target, PID + TARGET_MAX_CARRIERS));
	/* They do not count before their events are open. */
	assert_false(target_has_carrier(target));
	assert_int_equal(target_carrier(target, 1), PID + 1);
	assert_true(target_confirm_carrier(target, PID + 1));
	assert_true(target_has_carrier(target));
	assert_false(target_add_carrier(target, PID + 1));
	target_remove_carrier(target, PID);
	assert_false(target_confirm_carrier(target, PID));
	assert_true(target_has_carrier(target));
	assert_true(target_add_carrier(target, PID + TARGET_MAX_CARRIERS));
	target_remove_carrier(target, PID + 1);
	assert_false(target_has_carrier(target));
	target_table_remove(*state, PID);
	assert_int_equal(target_carrier(target_table_add(*state, PID), 0), 0);
}

/* A program may ask for events while the recorder opens those that were asked for before. */
static void requests_during_the_opening_stay(void **state)
{
	struct target *target = target_table_add(*state, PID);

	assert_false(target_begin_opening(target));
	target->forks = TARGET_FORKS_WANTED;
	assert_true(target_begin_opening(target));
	assert_true(target_waits(target));
	target->forks = TARGET_FORKS_WANTED;
	target_table_end_opening(*state, target, true);
	assert_true(target_waits(target));
	assert_true(target_begin_opening(target));
	target_table_end_opening(*state, target, true);
	assert_false(target_waits(target));
	assert_int_equal(target->forks, TARGET_FORKS_FOLLOWED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(removed_entries_are_no_process, setup, teardown),
		cmocka_unit_test_setup_teardown(removed_entries_are_used_again, setup, teardown),
		cmocka_unit_test_setup_teardown(all_entries_of_a_process_are_removed, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_full_table_adds_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(a_thousand_processes_have_room, setup, teardown),
		cmocka_unit_test_setup_teardown(so_have_processes_of_evenly_spaced_ids, setup,
						teardown),
		cmocka_unit_test_setup_teardown(who_has_no_room_is_told, setup, teardown),
		cmocka_unit_test_setup_teardown(overdue_stops_end, setup, teardown),
		cmocka_unit_test_setup_teardown(set_up_work_has_a_limit_of_its_own, setup,
						teardown),
		cmocka_unit_test_setup_teardown(those_that_fill_the_rings_may_be_stopped_first,
						setup, teardown),
		cmocka_unit_test_setup_teardown(all_targets_are_alike_if_they_are_named, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_stop_of_others_has_a_limit_of_its_own, setup,
						teardown),
		cmocka_unit_test_setup_teardown(who_fills_the_rings_for_long_is_told, setup,
						teardown),
		cmocka_unit_test_setup_teardown(stops_by_others_stay, setup, teardown),
		cmocka_unit_test_setup_teardown(stops_that_may_be_handled_are_sent_again, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_later_process_of_the_id_gets_no_signal, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_process_is_continued_without_descriptors, setup,
						teardown),
		cmocka_unit_test_setup_teardown(requests_during_the_opening_stay, setup, teardown),
		cmocka_unit_test_setup_teardown(carriers_are_added_once_and_removed, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
