/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Targets that stay stopped because another process has stopped them, or because leakrec may not
 * continue them: when that is told.
 */
#include "common/clock.h"
#include "common/proc/process_namespace.h"
#include "recorder/target_table/target_table.h"
#include "recorder/targets/kept_stops.h"

#include <linux/capability.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* No process has such ids: PID_MAX_LIMIT is 2^22. */
#define FIRST_PID  5000000
#define NR_TARGETS 3
#define NOBODY	   65534

static struct target_table *table;
static struct bpf_recorder recorder;
static uint64_t nr_skipped;
static char told[256]; /* since the last look at it */

/* In place of bpf_recorder.c, which has the programs' memory. */
uint64_t bpf_recorder_nr_skipped(const struct bpf_recorder *of, enum skip_cost cost)
{
	assert_ptr_equal(of, &recorder);
	return cost == SKIP_COSTS_STOPS ? nr_skipped : 0;
}

/* In place of process_namespace.c. */
bool process_namespace_format_name(pid_t pid, char to[static PROCESS_NAME_MAX])
{
	size_t length = strlen(told);

	snprintf(told + length, sizeof(told) - length, " %d", (int)pid - FIRST_PID);
	*to = 0;
	return false;
}

static int set_up(void **state)
{
	table = mmap(NULL, sizeof(*table), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		     0);
	assert_ptr_not_equal(table, MAP_FAILED);
	for (unsigned int i = 0; i < NR_TARGETS; i++)
		assert_non_null(target_table_add(table, FIRST_PID + i));
	nr_skipped = 0;
	return 0;
}

static int tear_down(void **state)
{
	return munmap(table, sizeof(*table));
}

static struct target *target_of(unsigned int i)
{
	return target_table_find(table, FIRST_PID + i);
}

/* A program has stopped target @i, which is continued. Returns who is told of. */
static const char *told_after_stop(unsigned int i, const struct bpf_recorder *by)
{
	target_of(i)->stopped = table->any_stopped = 1;
	target_table_continue_ready(table);
	assert_int_equal(target_of(i)->stopped, 0);
	*told = 0;
	kept_stops_tell(table, by);
	return told;
}

/* It is known who has stopped and continued them. */
static void nothing_is_told_without_a_skip(void **state)
{
	target_of(1)->job_stopped = 1;
	for (unsigned int i = 0; i < NR_TARGETS; i++)
		assert_string_equal(told_after_stop(i, &recorder), "");
	assert_int_equal(target_of(1)->job_stopped, 1);
}

static void each_is_told_once(void **state)
{
	target_of(1)->job_stopped = target_of(2)->job_stopped = 1;
	assert_string_equal(told_after_stop(1, &recorder), "");
	nr_skipped = 1;
	assert_string_equal(told_after_stop(0, &recorder), "");
	assert_string_equal(told_after_stop(1, &recorder), " 1");
	assert_string_equal(told_after_stop(1, &recorder), "");
	assert_string_equal(told_after_stop(2, &recorder), " 2");
	/* The next process of the entry is another one. */
	target_table_remove(table, FIRST_PID + 1);
	target_table_add(table, FIRST_PID + 1);
	target_of(1)->job_stopped = 1;
	assert_string_equal(told_after_stop(1, &recorder), " 1");
}

/* Whoever ends the stop: the watchdog, or the end of the recording. */
static void all_ends_of_stops_count(void **state)
{
	nr_skipped = 1;
	for (unsigned int i = 0; i < 2; i++) {
		target_of(i)->job_stopped = target_of(i)->stopped = 1;
		*told = 0;
		if (i)
			target_table_continue_all(table);
		else
			target_table_continue_overdue(table, UINT64_MAX);
		kept_stops_tell(table, &recorder);
		assert_string_equal(told, i ? " 1" : " 0");
	}
}

static void skips_of_other_programs_are_not_counted(void **state)
{
	target_of(0)->job_stopped = 1;
	assert_string_equal(told_after_stop(0, NULL), " 0");
}

/* Gives up CAP_KILL for the moment, or takes it back. Returns false if it is not permitted. */
static bool set_right_to_kill(bool has_right)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
	struct __user_cap_data_struct *word = &data[CAP_TO_INDEX(CAP_KILL)];

	assert_int_equal(syscall(SYS_capget, &header, data), 0);
	if (!(word->permitted & CAP_TO_MASK(CAP_KILL)))
		return false;
	word->effective &= ~CAP_TO_MASK(CAP_KILL);
	if (has_right)
		word->effective |= CAP_TO_MASK(CAP_KILL);
	return syscall(SYS_capset, &header, data) == 0;
}

/*
 * A target, stopped, of another user, in a session of its own: within one, anybody may send
 * SIGCONT.
 */
static struct target *stopped_target_of_nobody(pid_t *ret)
{
	struct target *target;
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		setsid();
		if (setresuid(NOBODY, NOBODY, NOBODY))
			_exit(1);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		raise(SIGSTOP);
		for (;;)
			pause();
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_true(WIFSTOPPED(status));
	target = target_table_add(table, (unsigned int)pid);
	assert_non_null(target);
	target->stopped = TARGET_STOPPED;
	target->stopped_ns = clock_now_ns();
	*ret = pid;
	return target;
}

static bool has_continued(pid_t pid)
{
	int status;

	return waitpid(pid, &status, WCONTINUED | WNOHANG) == pid && WIFCONTINUED(status);
}

static void who_may_not_be_continued_is_told_once_and_nothing_is_stopped(void **state)
{
	struct target *target;
	pid_t pid;

	if (geteuid() != 0 || !set_right_to_kill(true))
		skip();
	target = stopped_target_of_nobody(&pid);
	*told = 0;
	assert_true(set_right_to_kill(false));
	target_table_continue_all(table);
	assert_false(has_continued(pid));
	assert_int_not_equal(target->stopped, TARGET_RUNS);
	assert_int_not_equal(table->forbidden, 0);
	kept_stops_tell(table, &recorder);
	assert_string_not_equal(told, "");
	/* It is tried again. Neither the output nor set-up work is too slow. */
	*told = 0;
	assert_int_equal(target_table_continue_ready(table), 0);
	target_table_continue_overdue(table, UINT64_MAX);
	kept_stops_tell(table, &recorder);
	assert_string_equal(told, "");
	assert_int_equal(table->overdue, 0);
	/* The watchdog does not stay for that. */
	assert_false(target_table_has_stopped(table));
	assert_true(set_right_to_kill(true));
	target_table_continue_ready(table);
	assert_true(has_continued(pid));
	assert_int_equal(target->stopped, TARGET_RUNS);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* Without programs, leakrec stops targets itself. */
static void who_may_not_be_stopped_has_no_mark(void **state)
{
	struct target *target;
	pid_t pid;

	if (geteuid() != 0 || !set_right_to_kill(true))
		skip();
	target = stopped_target_of_nobody(&pid);
	target_table_continue_all(table);
	assert_true(has_continued(pid));
	assert_true(set_right_to_kill(false));
	target_table_stop(table, target);
	assert_true(set_right_to_kill(true));
	assert_int_equal(target->stopped, TARGET_RUNS);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(nothing_is_told_without_a_skip, set_up, tear_down),
		cmocka_unit_test_setup_teardown(each_is_told_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(all_ends_of_stops_count, set_up, tear_down),
		cmocka_unit_test_setup_teardown(skips_of_other_programs_are_not_counted, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(
			who_may_not_be_continued_is_told_once_and_nothing_is_stopped, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(who_may_not_be_stopped_has_no_mark, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
