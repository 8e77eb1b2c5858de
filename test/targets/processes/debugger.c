// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * debugger PID: attaches to a process's first thread as gdb does (PTRACE_ATTACH), when the process
 * is stopped, and lets that thread run until standard input ends. Prints "attached", and at the end
 * "truth sigconts N": how many SIGCONTs came meanwhile.
 */
#include "truth.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

static char state_of(pid_t pid)
{
	char path[32], text[512];
	const char *end;
	ssize_t len;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	len = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (len <= 0)
		truth_die("debugger: the process has ended\n");
	close(fd);
	text[len] = '\0';
	end = strrchr(text, ')');
	return end ? end[2] : 0;
}

/* Returns the signal of the stop that the thread is in, or 0 if it runs. */
static int next_stop(pid_t pid, int options)
{
	int status;
	pid_t got = waitpid(pid, &status, __WALL | options);

	if (got < 0 || (got == pid && !WIFSTOPPED(status)))
		truth_die("debugger: the process has ended\n");
	return got == pid ? WSTOPSIG(status) : 0;
}

int main(int argc, char **argv)
{
	struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
	pid_t pid = argc > 1 ? (pid_t)strtol(argv[1], NULL, 10) : 0;
	long nr_continued = 0;
	int signal;

	while (state_of(pid) != 'T')
		usleep(500);
	if (ptrace(PTRACE_ATTACH, pid, 0, 0))
		truth_die("debugger: cannot attach\n");
	next_stop(pid, 0);
	ptrace(PTRACE_CONT, pid, 0, 0);
	if (write(STDOUT_FILENO, "attached\n", 9) != 9)
		return 1;
	while (poll(&input, 1, 5) == 0) {
		signal = next_stop(pid, WNOHANG);
		nr_continued += signal == SIGCONT;
		if (signal)
			ptrace(PTRACE_CONT, pid, 0, signal == SIGSTOP ? 0 : signal);
	}
	syscall(SYS_tgkill, pid, pid, SIGSTOP);
	while ((signal = next_stop(pid, 0)) != SIGSTOP) {
		nr_continued += signal == SIGCONT;
		ptrace(PTRACE_CONT, pid, 0, signal);
	}
	ptrace(PTRACE_DETACH, pid, 0, 0);
	truth_tell("sigconts", nr_continued);
	return 0;
}
