// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A process that allocates little, beside others that allocate much: a child makes a pair of malloc
 * and free every 5 milliseconds, until SIGTERM. Its parent, which allocates nothing, tells how
 * often and how long the child was stopped, and the longest time between two of its pairs:
 *
 *   truth stops 3, truth stopped_ms 70, truth longest_stop_ms 40, truth longest_gap_ms 44
 */
#include "truth.h"

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <time.h>

static _Atomic long *longest_gap_ns;

static long now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000L + now.tv_nsec;
}

static void __attribute__((noreturn)) allocate_now_and_then(void)
{
	long last_ns = now_ns();

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		long ns;

		usleep(5000);
		t_free(t_malloc(96));
		ns = now_ns();
		if (ns - last_ns > *longest_gap_ns)
			*longest_gap_ns = ns - last_ns;
		last_ns = ns;
	}
}

static void watch(pid_t child, const sigset_t *signals)
{
	long stopped_ns = 0, sum_ns = 0, longest_ns = 0, nr = 0;
	int signal;

	while (sigwait(signals, &signal) == 0 && signal != SIGTERM) {
		siginfo_t info = {0};
		long ns = now_ns();

		if (waitid(P_PID, (id_t)child, &info, WSTOPPED | WCONTINUED | WNOHANG))
			truth_die("bystander: the child has gone\n");
		if (info.si_code == CLD_STOPPED) {
			nr++;
			stopped_ns = ns;
		} else if (info.si_code == CLD_CONTINUED && stopped_ns) {
			sum_ns += ns - stopped_ns;
			if (ns - stopped_ns > longest_ns)
				longest_ns = ns - stopped_ns;
			stopped_ns = 0;
		}
	}
	truth_tell("stops", nr);
	truth_tell("stopped_ms", sum_ns / 1000000);
	truth_tell("longest_stop_ms", longest_ns / 1000000);
}

int main(int argc, char **argv)
{
	const struct sched_param priority = {.sched_priority = 1};
	sigset_t signals;
	pid_t child;

	truth_init(argc, argv);
	longest_gap_ns = mmap(NULL, sizeof(*longest_gap_ns), PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (longest_gap_ns == MAP_FAILED)
		truth_die("bystander: no shared memory\n");
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGCHLD);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	truth_begin();
	child = fork();
	if (child < 0)
		truth_die("bystander: cannot fork\n");
	if (child == 0) {
		truth_forked();
		allocate_now_and_then();
	}
	/* So that it measures stops, and not how busy the CPUs are. */
	sched_setscheduler(0, SCHED_RR, &priority);
	watch(child, &signals);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	truth_tell("longest_gap_ms", *longest_gap_ns / 1000000);
	truth_print();
	return 0;
}
