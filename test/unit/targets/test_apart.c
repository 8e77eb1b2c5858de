/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Work in a process of its own, and how a signal for this one ends it. */
#include "recorder/processes/apart.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#define MAX_FDS	  1024
#define NR_OPENED 500 /* ten milliseconds each */

/* As libperf, closes what it has opened when it fails. */
static int open_many(void *argument)
{
	const struct timespec pause = {.tv_nsec = 10000000};
	int nr = *(int *)argument, fds[NR_OPENED], opened, err = 0;

	for (opened = 0; opened < nr && !err; opened++) {
		fds[opened] = open("/dev/null", O_RDONLY | O_CLOEXEC);
		err = fds[opened] < 0 ? -errno : 0;
		nanosleep(&pause, NULL);
	}
	while (opened > 0)
		if (fds[--opened] >= 0)
			close(fds[opened]);
	return err ? err : nr;
}

static bool was_open[MAX_FDS];

static void note_fds(void)
{
	for (int fd = 0; fd < MAX_FDS; fd++)
		was_open[fd] = fcntl(fd, F_GETFD) >= 0;
}

/* Closes the descriptors that were opened since, and returns their number. */
static int close_new_fds(void)
{
	int nr = 0;

	for (int fd = 0; fd < MAX_FDS; fd++)
		nr += !was_open[fd] && close(fd) == 0;
	return nr;
}

static void send_blocked(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	raise(SIGTERM);
}

static void consume_signal(void)
{
	sigset_t set;
	int number;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	assert_int_equal(sigwait(&set, &number), 0);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

static void test_results(void **state)
{
	int nr = 3;

	assert_int_equal(apart_run(open_many, &nr), 3);
	assert_int_equal(apart_open(open_many, &nr), 3);
}

static void test_a_signal_ends_opening_only(void **state)
{
	int nr = NR_OPENED, few = 20, fd, nr_kept;

	note_fds();
	send_blocked();
	assert_int_equal(apart_open(open_many, &nr), -EINTR);
	/* What the work closed was not the last descriptor. */
	nr_kept = close_new_fds();
	assert_in_range(nr_kept, 1, NR_OPENED - 1);
	assert_int_equal(apart_run(open_many, &few), few);
	/* This process can still open what it needs to end. */
	fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	close(fd);
	consume_signal();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_results),
		cmocka_unit_test(test_a_signal_ends_opening_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
