/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/backpressure/watchdog.h"

#include "common/clock.h"
#include "common/diag.h"
#include "common/sandbox/capabilities.h"
#include "common/scope.h"
#include "recorder/processes/helper_name.h"
#include "recorder/target_table/target_table.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * How often, and how far apart, the watchdog looks for stopped targets after the recorder's end. A
 * program of backpressure's may run until then, because its task was preempted, and stop a target.
 */
#define LAST_LOOKS	 10
#define BETWEEN_LOOKS_MS 20
#define RECORDER_END_MS	 5000

/* The interval of checks for overdue stops. A stop ends before the second check from now. */
#define LOOK_MS	      50
#define LOOK_NS	      (LOOK_MS * 1000000ULL)
#define WATCHDOG_NICE (-20)

bool watchdog_may_continue(bool tells)
{
	bool ret = capabilities_have(CAP_KILL);

	if (!ret && tells)
		diag_warn("cannot stop processes without CAP_KILL, which continues them: events "
			  "may be lost, and first calls of children and in new files be missing; "
			  "run leakrec as root, or give it CAP_KILL, too");
	return ret;
}

/*
 * Returns when the recorder has ended, or is about to. Where nothing may ever be stopped, there is
 * nothing to look for, and each look would delay a busy target.
 */
static void wait_for_recorder(struct target_table *table, int recorder_fd)
{
	const int interval_ms = table->forbidden ? -1 : LOOK_MS;
	struct pollfd recorder = {.fd = recorder_fd, .events = POLLIN};

	do {
		uint64_t now_ns = clock_now_ns();

		target_table_note_watchdog(table, now_ns);
		target_table_find_fillers(table, now_ns);
		target_table_continue_overdue(table, now_ns + 2 * LOOK_NS);
	} while (poll(&recorder, 1, interval_ms) <= 0);
}

/*
 * The watchdog must not be late, however busy the machine is, and works for microseconds only. A
 * nice value counts only among the processes of a session, where these are scheduled together
 * (sched_autogroup_enabled, sched(7)).
 */
static void get_cpu_first(void)
{
	const struct sched_param lowest = {.sched_priority = 1};

	if (sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &lowest) != 0)
		setpriority(PRIO_PROCESS, 0, WATCHDOG_NICE);
}

/* The watchdog's life, after fork(): waits for the recorder's end, and continues what it has left.
 */
static void __attribute__((noreturn))
run_watchdog(struct target_table *table, int recorder_fd, int recorder_pidfd)
{
	struct pollfd recorder = {.fd = recorder_pidfd, .events = POLLIN};
	sigset_t all;
	char byte = 0;

	/* A signal that ends the recorder, such as Ctrl-C, must not end its watchdog first. */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	setsid();
	helper_rename("leak-watchdog");
	get_cpu_first();
	target_table_note_watchdog(table, clock_now_ns());
	capng_clear(CAPNG_SELECT_BOTH);
	if (watchdog_may_continue(false))
		capng_update(CAPNG_ADD, CAPNG_EFFECTIVE | CAPNG_PERMITTED, CAP_KILL);
	if (capabilities_apply() < 0 && geteuid() == 0)
		diag_warn("the watchdog keeps its capabilities: they cannot be dropped");

	/* The watchdog is ready. From here on it allocates nothing, so it hits no probe. */
	if (write(recorder_fd, &byte, 1) != 1)
		_exit(1);
	wait_for_recorder(table, recorder_fd);
	target_table_close(table);
	target_table_continue_all(table);
	/*
	 * At its end, the kernel closes the recorder's descriptors one by one. Programs stay
	 * attached until then.
	 */
	poll(&recorder, 1, RECORDER_END_MS);
	for (int i = 0; i < LAST_LOOKS; i++) {
		poll(NULL, 0, BETWEEN_LOOKS_MS);
		target_table_continue_all(table);
	}
	/* A program may have been preempted for longer. After this, all have ended. */
	syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0);
	/* A debugged target can be continued only when its debugger has gone. */
	while (target_table_has_stopped(table)) {
		poll(NULL, 0, LOOK_MS);
		target_table_continue_all(table);
	}
	_exit(0);
}

/* Closes everything but the two descriptors, which become 0 and 1. */
static void keep_only(int *a, int *b)
{
	int first = fcntl(*a, F_DUPFD, 100), second = fcntl(*b, F_DUPFD, 100);

	dup2(first, 0);
	dup2(second, 1);
	syscall(SYS_close_range, 2, ~0U, 0);
	*a = 0;
	*b = 1;
}

bool watchdog_was_killed(const struct watchdog *watchdog)
{
	char byte;

	return watchdog->pid > 0 &&
	       recv(watchdog->recorder_fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

void watchdog_stop(struct watchdog *watchdog, struct target_table *table)
{
	if (watchdog->pid <= 0)
		return;
	if (!target_table_has_stopped(table)) {
		kill(watchdog->pid, SIGKILL);
		waitpid(watchdog->pid, NULL, 0);
	}
	close(watchdog->recorder_fd);
	watchdog->pid = 0;
}

int watchdog_start(struct watchdog *ret, struct target_table *table)
{
	_cleanup_close_ int watchdog_fd = -1, own_fd = -1, pidfd = -1;
	char byte;
	int fds[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
		return -errno;
	watchdog_fd = fds[0];
	own_fd = fds[1];
	pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	if (pidfd < 0)
		return -errno;
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0) {
		keep_only(&watchdog_fd, &pidfd);
		run_watchdog(table, watchdog_fd, pidfd);
	}
	close(steal_fd(watchdog_fd));
	*ret = (struct watchdog){.pid = pid, .recorder_fd = steal_fd(own_fd)};
	if (read(ret->recorder_fd, &byte, 1) == 1)
		return 0;
	watchdog_stop(ret, table);
	return -ECHILD;
}
