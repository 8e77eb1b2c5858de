/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What stopping a process's threads leaves undone. */
#include "scan/snapshot/thread_stop.h"

#include "common/clock.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#define NR_STOPS 200
#define STOP_NS	 1000000

/* Of the process that is stopped. */
struct counts {
	uint64_t sent, handled;
	bool is_ready; /* its first thread does what it is to do */
	bool is_done;
};

static struct counts *counts;

static void handle(int signal)
{
	(void)signal;
	counts->handled++;
}

static void *signal_itself(void *unused)
{
	(void)unused;
	while (!__atomic_load_n(&counts->is_done, __ATOMIC_ACQUIRE)) {
		counts->sent++;
		raise(SIGUSR1);
	}
	_exit(0);
}

/* Its first thread waits in the kernel for a child, as in vfork(), and never stops. */
static void __attribute__((noreturn)) be_target(void)
{
	pthread_t thread;
	pid_t child;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGUSR1, handle);
	if (pthread_create(&thread, NULL, signal_itself, NULL))
		_exit(1);
	child = (pid_t)syscall(SYS_clone, CLONE_VFORK | SIGCHLD, 0, 0, 0, 0);
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		__atomic_store_n(&counts->is_ready, true, __ATOMIC_RELEASE);
		for (;;)
			pause();
	}
	_exit(1);
}

struct attempt {
	pid_t target, late;
	int err;
};

/* In a thread that ends: the kernel lets go of what was not released. */
static void *stop(void *argument)
{
	struct attempt *attempt = argument;
	struct thread_stop stop;

	attempt->err = thread_stop_all(&stop, attempt->target, clock_now_ns() + STOP_NS);
	attempt->late = stop.late;
	thread_stop_release(&stop);
	return NULL;
}

static pid_t start(void (*run)(void))
{
	pid_t target;

	counts = mmap(NULL, sizeof(*counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	assert_true(counts != MAP_FAILED);
	target = fork();
	if (target == 0)
		run();
	while (!__atomic_load_n(&counts->handled, __ATOMIC_ACQUIRE) ||
	       !__atomic_load_n(&counts->is_ready, __ATOMIC_ACQUIRE))
		usleep(1000);
	return target;
}

static void end(pid_t target)
{
	int status;

	__atomic_store_n(&counts->is_done, true, __ATOMIC_RELEASE);
	assert_int_equal(waitpid(target, &status, 0), target);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	assert_int_equal(counts->handled, counts->sent);
	munmap(counts, sizeof(*counts));
}

static void a_late_thread_costs_no_signal_of_others(void **state)
{
	pid_t target = start(be_target);
	pthread_t thread;

	(void)state;
	/* On busy CPUs, the time may be over before any thread is late. */
	for (int nr_late = 0; nr_late < NR_STOPS;) {
		struct attempt attempt = {.target = target};

		assert_int_equal(pthread_create(&thread, NULL, stop, &attempt), 0);
		pthread_join(thread, NULL);
		assert_int_equal(attempt.err, -ETIMEDOUT);
		nr_late += attempt.late == target;
	}
	end(target);
}

static void be_target_of_any(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
	signal(SIGUSR1, handle);
	counts->is_ready = true;
	signal_itself(NULL);
}

static void who_is_killed_takes_no_signal_along(void **state)
{
	pid_t target = start(be_target_of_any);

	(void)state;
	for (int i = 0; i < NR_STOPS; i++) {
		struct thread_stop stop;
		pid_t pid = fork();
		int status;

		if (pid == 0) {
			if (thread_stop_all(&stop, target, UINT64_MAX) == 0)
				raise(SIGKILL);
			_exit(1);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSIGNALED(status));
	}
	end(target);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_late_thread_costs_no_signal_of_others),
		cmocka_unit_test(who_is_killed_takes_no_signal_along),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
