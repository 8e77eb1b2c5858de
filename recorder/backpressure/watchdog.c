/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/backpressure/watchdog.h"

#include "common/clock.h"
#include "common/scope.h"
#include "common/proc/process_status.h"
#include "recorder/target_table/target_table.h"
#include "recorder/processes/helper_name.h"

#include <cap-ng.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* After the recorder's end, programs of backpressure may be under way for as long as a task is
 * preempted. */
#define LAST_LOOKS	 10
#define BETWEEN_LOOKS_MS 20
#define RECORDER_END_MS	 5000

/* How often it looks for stops that are to end. Each ends before the second look from now. */
#define LOOK_MS	      50
#define LOOK_NS	      (LOOK_MS * 1000000ULL)
#define WATCHDOG_NICE (-20)

/*
 * True if a debugger has @target, which is then its to continue: our SIGCONT would end what it has
 * the process do. Tracers that seize (strace) are told of stops as such, and wait for SIGCONT
 * (ptrace(2)).
 */
static bool is_debugged(const struct target_table *shared, struct target *target)
{
	pid_t pid = (pid_t)target->tgid;

	if (!shared->blind && !target->debugged)
		return false;
	if (process_status_tracer(pid) > 0)
		return true;
	/* The next that attaches sets the mark, perhaps before it is taken down: looked up again.
	 */
	__atomic_store_n(&target->debugged, 0, __ATOMIC_SEQ_CST);
	if (process_status_tracer(pid) <= 0)
		return false;
	target->debugged = 1;
	return true;
}

/* Lets @target go on if it is marked. */
static void continue_target(struct target *target)
{
	unsigned long long tgid = target->tgid;

	if ((!target->stopped && !target->continuing) || !target_is_process(tgid))
		return;
	/*
	 * The mark goes first: who stops it again after this marks it again. Whoever is killed
	 * between the two steps leaves the second to its watchdog.
	 */
	__atomic_store_n(&target->continuing, 1, __ATOMIC_SEQ_CST);
	target->set_up = 0;
	__atomic_store_n(&target->stopped, 0, __ATOMIC_SEQ_CST);
	if (!target->job_stopped)
		kill((pid_t)tgid, SIGCONT);
	__atomic_store_n(&target->continuing, 0, __ATOMIC_SEQ_CST);
}

unsigned long long watchdog_continue_targets(struct target_table *shared, bool all)
{
	unsigned long long first_ns = 0, now_ns = clock_now_ns();

	if (!__atomic_exchange_n(&shared->any_stopped, 0, __ATOMIC_SEQ_CST))
		return 0;
	/* Children first: a parent that ends makes orphans, and stopped ones get SIGHUP. */
	for (unsigned int linked = 0; linked < 2; linked++) {
		for (size_t i = 0; i < TARGET_TABLE_SIZE; i++) {
			struct target *target = &shared->targets[i];
			unsigned long long since_ns = 0;

			if (!target_is_process(target->tgid) || target->linked != linked)
				continue;
			if (target->stopped && !target->set_up)
				since_ns = target->stopped_ns;
			if ((!all && target_waits(target)) ||
			    (target->stopped && is_debugged(shared, target))) {
				shared->any_stopped = 1;
				continue;
			}
			continue_target(target);
			if (since_ns && (!first_ns || since_ns < first_ns))
				first_ns = since_ns;
		}
	}
	return first_ns && first_ns < now_ns ? now_ns - first_ns : 0;
}

bool watchdog_has_stopped(const struct target_table *shared)
{
	for (size_t i = 0; i < TARGET_TABLE_SIZE; i++)
		if (target_is_process(shared->targets[i].tgid) && shared->targets[i].stopped)
			return true;
	return false;
}

void watchdog_continue_overdue(struct target_table *shared, unsigned long long now_ns)
{
	for (size_t i = 0; i < TARGET_TABLE_SIZE; i++) {
		struct target *target = &shared->targets[i];
		bool set_up = target->set_up;

		if (!target_is_process(target->tgid) || !target->stopped ||
		    now_ns + 2 * LOOK_NS < target->stopped_ns + (set_up ? TARGET_MAX_SET_UP_NS
									: TARGET_MAX_STOP_NS) ||
		    is_debugged(shared, target))
			continue;
		/* Before it goes on: it may be on its way into the next stop. */
		__atomic_store_n(set_up ? &shared->set_up_overdue : &shared->overdue, 1,
				 __ATOMIC_SEQ_CST);
		if (set_up) {
			shared->missed = 1;
			shared->nr_set_up_late++;
		}
		continue_target(target);
	}
}

/* Returns when the recorder has ended, or is about to. */
static void wait_for_recorder(struct target_table *shared, int recorder_fd)
{
	struct pollfd recorder = {.fd = recorder_fd, .events = POLLIN};

	do {
		unsigned long long now_ns = clock_now_ns();

		__atomic_store_n(&shared->watchdog_ns, now_ns, __ATOMIC_SEQ_CST);
		watchdog_continue_overdue(shared, now_ns);
	} while (poll(&recorder, 1, LOOK_MS) <= 0);
}

static void __attribute__((noreturn))
run_guard(struct target_table *shared, int recorder_fd, int recorder_pidfd)
{
	struct pollfd recorder = {.fd = recorder_pidfd, .events = POLLIN};
	sigset_t all;
	char byte = 0;

	/* Ctrl-C and whatever else ends the recorder must not end its watchdog first. */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	setsid();
	helper_rename("leak-guard");
	setpriority(PRIO_PROCESS, 0, WATCHDOG_NICE);
	shared->watchdog_ns = clock_now_ns();
	capng_clear(CAPNG_SELECT_BOTH);
	capng_update(CAPNG_ADD, CAPNG_EFFECTIVE | CAPNG_PERMITTED, CAP_KILL);
	capng_apply(CAPNG_SELECT_BOTH);

	/* Ready; from here on it allocates nothing, and so hits no probe. */
	if (write(recorder_fd, &byte, 1) != 1)
		_exit(1);
	wait_for_recorder(shared, recorder_fd);
	shared->closed = 1;
	shared->any_stopped = 1;
	watchdog_continue_targets(shared, true);
	/* Its descriptors are closed one by one; backpressure is attached until its events are. */
	poll(&recorder, 1, RECORDER_END_MS);
	for (int i = 0; i < LAST_LOOKS; i++) {
		poll(NULL, 0, BETWEEN_LOOKS_MS);
		shared->any_stopped = 1;
		watchdog_continue_targets(shared, true);
	}
	/* One may be preempted for longer: the kernel's readers have all ended behind this. */
	syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0);
	/* Whom a debugger has is let go on when it has gone. */
	while (watchdog_has_stopped(shared)) {
		poll(NULL, 0, LOOK_MS);
		shared->any_stopped = 1;
		watchdog_continue_targets(shared, true);
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

void watchdog_stop(struct watchdog *watchdog, const struct target_table *shared)
{
	if (watchdog->pid <= 0)
		return;
	if (!watchdog_has_stopped(shared)) {
		kill(watchdog->pid, SIGKILL);
		waitpid(watchdog->pid, NULL, 0);
	}
	close(watchdog->recorder_fd);
	watchdog->pid = 0;
}

int watchdog_start(struct watchdog *ret, struct target_table *shared)
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
		run_guard(shared, watchdog_fd, pidfd);
	}
	close(steal_fd(watchdog_fd));
	*ret = (struct watchdog){.pid = pid, .recorder_fd = steal_fd(own_fd)};
	if (read(ret->recorder_fd, &byte, 1) == 1)
		return 0;
	watchdog_stop(ret, shared);
	return -ECHILD;
}
