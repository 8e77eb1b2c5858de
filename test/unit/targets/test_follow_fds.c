/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Inherited events are closed when all that have them have ended, and not before. */
#include "recorder/targets/follow_fds.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define NR_EVENTS 3

static struct follow_fds fds;

static int setup(void **state)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = limit.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	/* A child's child becomes this process's. */
	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
	follow_fds_prepare(&fds);
	return 0;
}

static int teardown(void **state)
{
	follow_fds_close(&fds);
	return 0;
}

static void skip_without_ring(void)
{
	if (!fds.ring)
		skip();
}

/* A process that forks a child when it is told to, tells its id, and ends. */
struct parent {
	pid_t pid;
	int go, child;
};

static struct parent start_parent(void)
{
	int go[2], told[2];
	struct parent parent;

	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	assert_int_equal(pipe2(told, O_CLOEXEC), 0);
	parent = (struct parent){fork(), go[1], told[0]};
	assert_true(parent.pid >= 0);
	if (!parent.pid) {
		char byte;
		pid_t child;

		close(go[1]);
		if (read(go[0], &byte, 1) != 1)
			_exit(1);
		child = fork();
		while (!child)
			pause();
		_exit(write(told[1], &child, sizeof(child)) != sizeof(child));
	}
	close(go[0]);
	close(told[1]);
	return parent;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* Lets the parent fork, and end. Returns its child. */
static pid_t run_parent(const struct parent *parent)
{
	pid_t child;

	assert_int_equal(write(parent->go, "", 1), 1);
	assert_int_equal(read(parent->child, &child, sizeof(child)), sizeof(child));
	close(parent->go);
	close(parent->child);
	assert_int_equal(waitpid(parent->pid, NULL, 0), parent->pid);
	return child;
}

static int open_event(pid_t pid)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
		.disabled = 1,
		.exclude_kernel = 1,
		.inherit = 1,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

/* Returns one of the events. */
static int follow(pid_t pid)
{
	struct follow_fd event = {0};

	assert_int_equal(follow_fds_add_witness(&fds, pid, &event.witness), 0);
	for (int i = 0; i < NR_EVENTS; i++) {
		event.fd = open_event(pid);
		assert_int_equal(follow_fds_add(&fds, &event), 0);
	}
	return event.fd;
}

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static void closed_after_the_last_heir(void **state)
{
	struct parent parent;
	pid_t child;
	int event;

	skip_without_ring();
	parent = start_parent();
	event = follow(parent.pid);
	follow_fds_sweep(&fds);
	assert_int_equal(fds.nr, NR_EVENTS + 1);
	child = run_parent(&parent);
	follow_fds_sweep(&fds);
	assert_int_equal(fds.nr, NR_EVENTS + 1);
	assert_true(is_open(event));
	end(child);
	follow_fds_sweep(&fds);
	assert_int_equal(fds.nr, 0);
	assert_false(is_open(event));
}

static void others_stay(void **state)
{
	struct parent ends, stays;
	int inherited, other;

	skip_without_ring();
	other = open_event(getpid());
	assert_int_equal(follow_fds_add(&fds, &(struct follow_fd){.fd = other, .witness = -1}), 0);
	ends = start_parent();
	follow(ends.pid);
	stays = start_parent();
	inherited = follow(stays.pid);
	other = open_event(getpid());
	assert_int_equal(follow_fds_add(&fds, &(struct follow_fd){.fd = other, .witness = -1}), 0);
	end(ends.pid);
	follow_fds_sweep(&fds);
	assert_int_equal(fds.nr, NR_EVENTS + 1 + 2);
	assert_true(is_open(inherited));
	assert_true(is_open(other));
	end(stays.pid);
}

static void events_without_a_witness_stay(void **state)
{
	int ring_fd = fds.ring_fd, event;
	pid_t child;

	skip_without_ring();
	/* No event can share this ring. */
	fds.ring_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	child = fork();
	if (child == 0) {
		alarm(60); /* where this test fails */
		for (;;)
			pause();
	}
	assert_true(child > 0 && fds.ring_fd >= 0);
	event = follow(child);
	close(fds.ring_fd);
	fds.ring_fd = ring_fd;
	end(child);
	follow_fds_sweep(&fds);
	assert_int_equal(fds.nr, NR_EVENTS);
	assert_true(is_open(event));
	assert_int_equal(follow_fds_add_witness(&fds, child, &event), -ESRCH);
}

static void swept_when_there_are_many(void **state)
{
	struct parent parent;
	size_t nr_children = 0;

	skip_without_ring();
	for (; !follow_fds_want_sweep(&fds); nr_children++) {
		parent = start_parent();
		follow(parent.pid);
		close(parent.go);
		close(parent.child);
		end(parent.pid);
		assert_true(nr_children < 1000);
	}
	assert_true(nr_children > 100);
	parent = start_parent();
	follow(parent.pid);
	follow_fds_sweep(&fds);
	assert_int_equal(fds.nr, NR_EVENTS + 1);
	assert_false(follow_fds_want_sweep(&fds));
	end(parent.pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(closed_after_the_last_heir, setup, teardown),
		cmocka_unit_test_setup_teardown(others_stay, setup, teardown),
		cmocka_unit_test_setup_teardown(events_without_a_witness_stay, setup, teardown),
		cmocka_unit_test_setup_teardown(swept_when_there_are_many, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
