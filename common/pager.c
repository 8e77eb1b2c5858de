/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/pager.h"

#include "common/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define DEFAULT_PAGER "less"

/* True if @name is a program in PATH. A pager that the user names may be any shell command. */
static bool is_installed(const char *name)
{
	const char *set = getenv("PATH");
	_cleanup_free_ char *paths = strdup(set ? set : "/usr/bin:/bin");
	char *rest = paths, *directory;

	while (paths && (directory = strsep(&rest, ":"))) {
		_cleanup_free_ char *path = NULL;

		if (asprintf(&path, "%s/%s", *directory ? directory : ".", name) < 0)
			path = NULL;
		if (path && access(path, X_OK) == 0)
			return true;
	}
	return false;
}

/* The shell command of the pager, or NULL for none. */
static const char *choose(void)
{
	const char *command = getenv("LEAKTOOLS_PAGER");

	if (!command)
		command = getenv("PAGER");
	if (!command)
		command = is_installed(DEFAULT_PAGER) ? DEFAULT_PAGER : "";
	return *command && strcmp(command, "cat") != 0 ? command : NULL;
}

/* True if this process is root, or has rights that the user who started it does not have. */
static bool is_privileged(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};

	return geteuid() == 0 || getauxval(AT_SECURE) || syscall(SYS_capget, &header, data) < 0 ||
	       data[0].permitted || data[1].permitted;
}

static void __attribute__((noreturn)) run_pager(const char *command, int read_fd)
{
	signal(SIGPIPE, SIG_DFL);
	signal(SIGXFSZ, SIG_DFL);
	dup2(read_fd, STDIN_FILENO);
	/* As git does: quit if it fits on one screen, keep colours, leave the screen as it is. */
	setenv("LESS", "FRX", 0);
	setenv("LV", "-c", 0);
	/* Otherwise the user could start a shell with our rights from it (less(1), SECURITY). */
	if (is_privileged()) {
		setenv("LESSSECURE", "1", 1);
		unsetenv("LESSSECURE_ALLOW");
	}
	execl("/bin/sh", "sh", "-c", command, (char *)NULL);
	_exit(127);
}

void pager_start(struct pager *ret)
{
	_cleanup_close_ int read_fd = -1, write_fd = -1;
	const char *command;
	int fds[2];

	*ret = (struct pager){0};
	if (!isatty(STDOUT_FILENO))
		return;
	command = choose();
	if (!command || pipe2(fds, O_CLOEXEC) < 0)
		return;
	read_fd = fds[0];
	write_fd = fds[1];
	fflush(NULL);
	ret->pid = fork();
	if (ret->pid == 0)
		run_pager(command, read_fd);
	if (ret->pid < 0) {
		ret->pid = 0;
		return;
	}
	dup2(write_fd, STDOUT_FILENO);
	if (isatty(STDERR_FILENO))
		dup2(write_fd, STDERR_FILENO);
	/* Ctrl-C is for the pager, which has the terminal now. */
	signal(SIGINT, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
}

void pager_finish(struct pager *pager)
{
	if (!pager->pid)
		return;
	fflush(stdout);
	fflush(stderr);
	/* The pager sees the end of its input once all writing ends of the pipe are closed. */
	close(STDOUT_FILENO);
	close(STDERR_FILENO);
	while (waitpid(pager->pid, NULL, 0) < 0 && errno == EINTR)
		;
	pager->pid = 0;
}

bool pager_was_left(const struct pager *pager, int err)
{
	return pager->pid && err == EPIPE;
}
