/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "plot/gnuplot/gnuplot_process.h"

#include "common/broker/broker.h"
#include "common/output_file.h"
#include "common/sandbox/unprivileged.h"
#include "common/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/wait.h>

#define STOP_TIMEOUT_MS 2000
#define COOKIES_FD	GNUPLOT_NR_DESCRIPTORS /* in gnuplot */
#define COOKIES_FILE	"/dev/fd/4"
#define COOKIES_BYTES	(64 << 10)
#define FIRST_FREE_FD	(COOKIES_FD + 1)

/* What the new process needs, all with numbers from FIRST_FREE_FD on. */
struct start {
	enum gnuplot_group group;
	int fds[GNUPLOT_NR_DESCRIPTORS];
	int cookies_fd; /* or -1 */
	int error_fd;	/* takes an errno if gnuplot cannot be executed */
};

/* Copies the file that proves to a display that we may use it, which only its owner may read. */
static int copy_cookies(void)
{
	const char *named = getenv("XAUTHORITY"), *home = getenv("HOME");
	_cleanup_close_ int from = -1, copy = memfd_create("leakplot display", MFD_CLOEXEC);
	_cleanup_free_ char *path = NULL, *bytes = malloc(COOKIES_BYTES);
	ssize_t len;

	if (copy < 0 || !bytes || (!named && !home))
		return -1;
	if (asprintf(&path, "%s%s", named ? named : home, named ? "" : "/.Xauthority") < 0) {
		path = NULL;
		return -1;
	}
	from = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	len = from < 0 ? -1 : read(from, bytes, COOKIES_BYTES);
	if (len < 0 || output_write_all(copy, bytes, (size_t)len))
		return -1;
	return fcntl(copy, F_DUPFD_CLOEXEC, FIRST_FREE_FD);
}

/* gnuplot must not inherit ignored and blocked signals. gnuplot_process_end() needs SIGINT. */
static void restore_signals(void)
{
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	for (int signal_number = 1; signal_number < SIGRTMIN; signal_number++)
		signal(signal_number, SIG_DFL);
}

/* Returns an errno: that gnuplot could not be executed. */
static int execute(const struct start *start)
{
	/* -d: ignores start-up files, which could change the picture. */
	char *const argv[] = {(char[]){"gnuplot"}, (char[]){"-d"}, (char[]){GNUPLOT_SCRIPT_FILE},
			      NULL};
	int err;

	restore_signals();
	if (start->group != GNUPLOT_OURS)
		setpgid(0, 0);
	for (int i = 0; i < GNUPLOT_NR_DESCRIPTORS; i++)
		if (dup2(start->fds[i], i) < 0)
			return errno;
	unprivileged_keep_only((int[]){0, 1, 2, GNUPLOT_SCRIPT, start->cookies_fd, start->error_fd},
			       6);
	if (start->cookies_fd >= 0 && dup2(start->cookies_fd, COOKIES_FD) == COOKIES_FD)
		setenv("XAUTHORITY", COOKIES_FILE, 1);
	if (start->cookies_fd >= 0)
		close(start->cookies_fd);
	err = geteuid() == 0 ? unprivileged_program(start->group == GNUPLOT_WINDOW) : 0;
	if (err)
		return -err;
	execvp(argv[0], argv);
	return errno;
}

static void __attribute__((noreturn)) run(const struct start *start)
{
	int err = execute(start);

	if (write(start->error_fd, &err, sizeof(err)) < 0)
		_exit(2);
	_exit(1);
}

static int fork_gnuplot(struct start *start, pid_t *ret)
{
	_cleanup_close_ int read_fd = -1, write_fd = -1;
	int fds[2], err = 0;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	read_fd = fds[0];
	write_fd = fds[1];
	start->error_fd = fcntl(write_fd, F_DUPFD_CLOEXEC, FIRST_FREE_FD);
	if (start->error_fd < 0)
		return -errno;
	pid = fork();
	if (pid == 0)
		run(start);
	err = pid < 0 ? -errno : 0;
	close(start->error_fd);
	close(steal_fd(write_fd));
	if (err)
		return err;
	/* The pipe ends without a byte once gnuplot is executed. */
	if (read(read_fd, &err, sizeof(err)) == sizeof(err)) {
		waitpid(pid, NULL, 0);
		return -err;
	}
	*ret = pid;
	return 0;
}

static void close_copies(struct start *start)
{
	for (int i = 0; i < GNUPLOT_NR_DESCRIPTORS; i++)
		if (start->fds[i] >= 0)
			close(start->fds[i]);
	if (start->cookies_fd >= 0)
		close(start->cookies_fd);
}

static int end_here(struct gnuplot_process *process, bool stop)
{
	struct pollfd end = {.fd = process->pidfd, .events = POLLIN};
	int status = 0, err = 0;

	if (stop) {
		/* On SIGINT, gnuplot closes its windows and exits. SIGKILL leaves windows of qt
		 * open. */
		kill(process->pid, SIGINT);
		if (process->pidfd < 0 || poll(&end, 1, STOP_TIMEOUT_MS) <= 0)
			kill(process->pid, SIGKILL);
	}
	while (!err && waitpid(process->pid, &status, 0) < 0)
		err = errno == EINTR ? 0 : -errno;
	if (process->pidfd >= 0)
		close(process->pidfd);
	*process = (struct gnuplot_process){.pidfd = -1};
	return err ? err : status;
}

static int start_here(enum gnuplot_group group, const int fds[GNUPLOT_NR_DESCRIPTORS],
		      struct gnuplot_process *ret)
{
	/* The standard input has no data and no end, so that no "pause" ends early. */
	_cleanup_close_ int idle_fd = eventfd(0, EFD_CLOEXEC);
	struct start start = {.group = group, .cookies_fd = -1};
	int err = 0;

	for (int i = 0; i < GNUPLOT_NR_DESCRIPTORS; i++) {
		start.fds[i] = fcntl(i ? fds[i] : idle_fd, F_DUPFD_CLOEXEC, FIRST_FREE_FD);
		if (start.fds[i] < 0 && !err)
			err = -errno;
	}
	if (geteuid() == 0 && group == GNUPLOT_WINDOW)
		start.cookies_fd = copy_cookies();
	if (!err)
		err = fork_gnuplot(&start, &ret->pid);
	close_copies(&start);
	if (err)
		return err;
	/* The PID cannot be reused before end_here(). */
	ret->pidfd = pidfd_open(ret->pid, 0);
	if (ret->pidfd >= 0)
		return 0;
	err = -errno;
	end_here(ret, true);
	return err;
}

static int ask(enum broker_op op, int64_t number, int fd, int *ret_fd)
{
	const struct broker_request request = {.op = op, .number = number, .fd = fd};

	return broker_ask(&request, ret_fd);
}

/* The broker starts it (gnuplot_services.h), and knows its pid. */
static int ask_to_start(enum gnuplot_group group, const int fds[GNUPLOT_NR_DESCRIPTORS],
			struct gnuplot_process *ret)
{
	int err = 0, no_fd;

	*ret = (struct gnuplot_process){.pidfd = -1};
	for (int i = GNUPLOT_OUTPUT; i < GNUPLOT_NR_DESCRIPTORS && !err; i++)
		err = ask(BROKER_GIVE_TO_GNUPLOT, i, fds[i], &no_fd);
	return err ? err : ask(BROKER_START_GNUPLOT, group, -1, &ret->pidfd);
}

/* The broker does not wait for a gnuplot: whoever took this process over may never end it. */
static int ask_to_end(struct gnuplot_process *process, bool stop)
{
	struct pollfd end = {.fd = process->pidfd, .events = POLLIN};
	int no_fd;

	while (!stop && poll(&end, 1, -1) < 0 && errno == EINTR)
		;
	if (process->pidfd >= 0)
		close(process->pidfd);
	process->pidfd = -1;
	return ask(BROKER_END_GNUPLOT, 0, -1, &no_fd);
}

int gnuplot_process_start(enum gnuplot_group group, const int fds[GNUPLOT_NR_DESCRIPTORS],
			  struct gnuplot_process *ret)
{
	if (broker_is_used())
		return ask_to_start(group, fds, ret);
	return start_here(group, fds, ret);
}

int gnuplot_process_end(struct gnuplot_process *process, bool stop)
{
	return broker_is_used() ? ask_to_end(process, stop) : end_here(process, stop);
}
