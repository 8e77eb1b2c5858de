// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * File descriptors of all kinds, opened and closed by the C library, by raw system calls, in a
 * forked child, and in a child that posix_spawn() makes and that closes descriptors which its
 * parent still needs.
 *
 * Prints fd_given, fd_taken, fd_held, and pair_held, the part of fd_held that a pipe or a
 * socketpair made.
 */
#include "truth.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

extern char **environ;

static long given, taken, pair_held;

static int opened(int fd)
{
	if (fd < 0)
		truth_die("descriptors: a descriptor cannot be opened\n");
	given++;
	return fd;
}

static void close_it(int fd)
{
	if (close(fd) != 0)
		truth_die("descriptors: a descriptor cannot be closed\n");
	taken++;
}

static void use_files(void)
{
	for (int i = 0; i < 50; i++) {
		int fd = opened(i % 2 ? open("/dev/null", O_RDONLY | O_CLOEXEC)
				      : (int)syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDONLY));

		if (i % 10)
			close_it(fd);
		if (open("/nonexistent/file", O_RDONLY) >= 0)
			truth_die("descriptors: a file that should not exist\n");
	}
	for (int i = 0; i < 5; i++) {
		FILE *f = fopen("/dev/null", "r");

		opened(f ? fileno(f) : -1);
		if (i) {
			fclose(f);
			taken++;
		}
	}
}

static void use_pairs(void)
{
	int pipes[2], sockets[2];

	if (pipe(pipes) || socketpair(AF_UNIX, SOCK_STREAM, 0, sockets))
		truth_die("descriptors: no pairs\n");
	given += 4;
	close_it(pipes[0]);
	close_it(sockets[1]);
	pair_held = 2;
}

static void use_copies(int event)
{
	int copy = opened(dup(event));

	/* This closes the descriptor that had the number. */
	if (dup2(event, copy) != copy)
		truth_die("descriptors: dup2\n");
	given++;
	taken++;
	dup2(copy, copy);
	opened(fcntl(event, F_DUPFD_CLOEXEC, 200));
	opened(fcntl(event, F_DUPFD, 210));
	fcntl(event, F_GETFL);
	if (syscall(SYS_close_range, 200, 300, 0))
		truth_die("descriptors: close_range\n");
	taken += 2;
}

/*
 * The child's descriptors are copies of its parent's, which stay open. Descriptors that it opens
 * are its own.
 */
static void use_in_child(int event)
{
	pid_t child = fork();

	if (child == 0) {
		close(event);
		_exit(open("/dev/null", O_RDONLY) < 0);
	}
	if (child < 0 || waitpid(child, NULL, 0) != child)
		truth_die("descriptors: no child\n");
	given++;
}

/*
 * The child has its parent's memory and closes copies of descriptors, until it executes a program.
 */
static void spawn(int event)
{
	posix_spawn_file_actions_t actions;
	char *argv[] = {(char *)"true", NULL};
	pid_t child;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addclose(&actions, event);
	posix_spawn_file_actions_adddup2(&actions, 2, 77);
	if (posix_spawn(&child, "/bin/true", &actions, NULL, argv, environ) ||
	    waitpid(child, NULL, 0) != child)
		truth_die("descriptors: no spawned child\n");
	posix_spawn_file_actions_destroy(&actions);
}

int main(int argc, char **argv)
{
	int event, epoll;

	truth_init(argc, argv);
	truth_begin();
	use_files();
	use_pairs();
	event = opened(eventfd(0, 0));
	epoll = opened(epoll_create1(0));
	close_it(epoll);
	if (close(epoll) == 0)
		truth_die("descriptors: a second close\n");
	use_copies(event);
	use_in_child(event);
	spawn(event);
	truth_tell("fd_given", given);
	truth_tell("fd_taken", taken);
	truth_tell("fd_held", given - taken);
	truth_tell("pair_held", pair_held);
	truth_print();
	return 0;
}
