// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Two processes with one number: a child that holds blocks ends, and the next child gets its number
 * (/proc/sys/kernel/ns_last_pid, which needs root) and holds other blocks, at the same addresses,
 * since both have the parent's heap. "truth reused PID" is printed if that happened.
 *
 * Exact: every count.
 */
#include "truth.h"

#include <fcntl.h>
#include <stdio.h>

#define MAX_TRIES  2000
#define NR_BLOCKS  20
#define FIRST_SIZE 593 /* its chunk has the same size as the next one's */
#define NEXT_SIZE  600

/* Frees some of the blocks. */
static void __attribute__((noreturn)) hold(size_t size_bytes)
{
	void *blocks[NR_BLOCKS];

	truth_forked();
	for (size_t i = 0; i < NR_BLOCKS; i++)
		blocks[i] = t_malloc(size_bytes);
	for (size_t i = 0; i < NR_BLOCKS; i += 3)
		t_free(blocks[i]);
	_exit(0);
}

static bool set_last_pid(int fd, pid_t pid)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%d", (int)pid);

	return pwrite(fd, text, (size_t)len, 0) == len;
}

/* Forks until a child has the number. Other processes fork, too. */
static bool reuse(int fd, pid_t pid)
{
	for (int i = 0; i < MAX_TRIES; i++) {
		pid_t child = set_last_pid(fd, pid - 1) ? fork() : -1;

		if (child < 0)
			truth_die("pid_reuse: cannot choose a number\n");
		if (child == 0 && getpid() == pid)
			hold(NEXT_SIZE);
		if (child == 0)
			_exit(0);
		waitpid(child, NULL, 0);
		if (child == pid)
			return true;
	}
	return false;
}

int main(int argc, char **argv)
{
	int fd = open("/proc/sys/kernel/ns_last_pid", O_WRONLY | O_CLOEXEC);
	pid_t first;

	truth_init(argc, argv);
	if (fd < 0)
		truth_die("pid_reuse: cannot open ns_last_pid\n");
	truth_begin();
	first = fork();
	if (first == 0)
		hold(FIRST_SIZE);
	waitpid(first, NULL, 0);
	if (!reuse(fd, first))
		truth_die("pid_reuse: others were always faster\n");
	truth_tell("reused", first);
	truth_print();
	return 0;
}
