/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "plot/gnuplot/gnuplot.h"

#include "common/diag.h"
#include "common/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/wait.h>

#define REASON_BYTES_MAX 4096
#define STOP_TIMEOUT_MS	 2000
#define DISPLAY_CHECK_MS 500

/*
 * gnuplot reads its script from descriptor 3 as from a file. It mixes commands from standard input
 * with the events of its windows: with the x11 terminal, mouse movements cut such commands into
 * pieces.
 */
#define SCRIPT_FD   3
#define SCRIPT_FILE "/dev/fd/3"

/* Spawns gnuplot with descriptors 0 to 3. Returns 0 or a positive errno, as posix_spawn(3). */
static int spawn_gnuplot(pid_t *ret_pid, bool own_group, const int fds[SCRIPT_FD + 1])
{
	/* -d: ignores start-up files, which could change the picture. */
	char *const argv[] = {(char[]){"gnuplot"}, (char[]){"-d"}, (char[]){SCRIPT_FILE}, NULL};
	short flags = POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK;
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t set;
	int err;

	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attr);
	for (int i = 0; i <= SCRIPT_FD; i++)
		posix_spawn_file_actions_adddup2(&actions, fds[i], i);
	/* gnuplot must not inherit ignored and blocked signals. gnuplot_stop() needs SIGINT. */
	sigemptyset(&set);
	posix_spawnattr_setsigmask(&attr, &set);
	sigaddset(&set, SIGPIPE);
	sigaddset(&set, SIGINT);
	posix_spawnattr_setsigdefault(&attr, &set);
	posix_spawnattr_setpgroup(&attr, 0);
	if (own_group)
		flags |= POSIX_SPAWN_SETPGROUP;
	posix_spawnattr_setflags(&attr, flags);
	err = posix_spawnp(ret_pid, "gnuplot", &actions, &attr, argv, environ);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&actions);
	return err;
}

int gnuplot_start(struct gnuplot *gnuplot, bool own_group)
{
	_cleanup_close_ int output_fd = memfd_create("leakplot output", MFD_CLOEXEC);
	_cleanup_close_ int errors_fd = memfd_create("leakplot errors", MFD_CLOEXEC);
	/* The standard input has no data and no end, so that no "pause" ends early. */
	_cleanup_close_ int idle_fd = eventfd(0, EFD_CLOEXEC);
	_cleanup_close_ int read_fd = -1, write_fd = -1;
	_cleanup_fclose_ FILE *program = NULL;
	int pipe_fds[2];

	if (output_fd < 0 || errors_fd < 0 || idle_fd < 0 || pipe2(pipe_fds, O_CLOEXEC) < 0)
		goto failed;
	read_fd = pipe_fds[0];
	write_fd = pipe_fds[1];
	program = fdopen(write_fd, "w");
	if (!program)
		goto failed;
	/* NOLINTNEXTLINE(clang-analyzer-deadcode.DeadStores): its scope guard reads it */
	write_fd = -1;

	int err = spawn_gnuplot(&gnuplot->pid, own_group,
				(int[]){idle_fd, output_fd, errors_fd, read_fd});
	if (err == ENOENT) {
		diag_error("gnuplot is not installed; apt-get install gnuplot-nox (pictures) or "
			   "gnuplot-qt (windows too)");
		return -err;
	}
	if (err) {
		diag_error("cannot start gnuplot: %s", strerror(err));
		return -err;
	}
	/* The PID cannot be reused before wait_for_end(). */
	gnuplot->pidfd = pidfd_open(gnuplot->pid, 0);
	gnuplot->program = steal_ptr(program);
	gnuplot->output_fd = steal_fd(output_fd);
	gnuplot->errors_fd = steal_fd(errors_fd);
	if (gnuplot->pidfd < 0) {
		err = errno;
		diag_error("cannot watch gnuplot: %s", strerror(err));
		gnuplot_stop(gnuplot);
		return -err;
	}
	return 0;

failed:
	err = errno;
	diag_error("cannot start gnuplot: %s", strerror(err));
	return -err;
}

/*
 * The line of gnuplot's messages with the error: one that begins with the script's name and line,
 * as gnuplot marks errors, else the last line.
 */
static const char *find_reason(char *messages)
{
	static const char mark[] = "\"" SCRIPT_FILE "\" line ";
	const char *reason = NULL;
	char *rest = messages;

	for (char *line; (line = strsep(&rest, "\n"));) {
		line += strspn(line, " \t");
		char *colon = strncmp(line, mark, strlen(mark)) == 0 ? strstr(line, ": ") : NULL;
		if (colon && strncmp(colon + 2, "warning:", 8) != 0)
			return colon + 2;
		if (*line)
			reason = line;
	}
	return reason ? reason : "it gave no reason";
}

/* Reads gnuplot's standard error, at most @size - 1 bytes. */
static void read_messages(const struct gnuplot *gnuplot, char *messages, size_t size)
{
	ssize_t len = pread(gnuplot->errors_fd, messages, size - 1, 0);

	messages[len > 0 ? len : 0] = '\0';
}

/* Messages of Qt, gnuplot_x11 and wxWidgets. */
static bool lacks_display(const char *messages)
{
	return strstr(messages, "connect to display") || strstr(messages, "open display") ||
	       strstr(messages, "initialize wxWidgets");
}

static void report_failure(const struct gnuplot *gnuplot, int status)
{
	char messages[REASON_BYTES_MAX];

	read_messages(gnuplot, messages, sizeof(messages));
	if (lacks_display(messages))
		diag_error("cannot open a window on display %s; use -o FILE.png or "
			   "--term dumb",
			   getenv("DISPLAY") ? getenv("DISPLAY") : "(none)");
	else if (WIFSIGNALED(status))
		diag_error("gnuplot was killed by signal %d", WTERMSIG(status));
	else
		diag_error("gnuplot failed: %s", find_reason(messages));
}

/* Copies all of @from to @to. */
static int copy_output(int from, int to)
{
	_cleanup_free_ char *buffer = malloc(1 << 16);
	off_t offset = 0;
	ssize_t len;

	if (!buffer)
		return -ENOMEM;
	/* The dumb terminal begins each page with a form feed, even with "nofeed" (gnuplot 5.4). */
	if (pread(from, buffer, 1, 0) == 1 && buffer[0] == '\f')
		offset = 1;
	while ((len = pread(from, buffer, 1 << 16, offset)) > 0) {
		for (ssize_t done = 0; done < len;) {
			ssize_t written = write(to, buffer + done, (size_t)(len - done));

			if (written < 0 && errno == EINTR)
				continue;
			if (written < 0)
				return -errno;
			done += written;
		}
		offset += len;
	}
	return len < 0 ? -errno : 0;
}

/* Waits until gnuplot exits. */
static int wait_for_end(const struct gnuplot *gnuplot, int *ret_status)
{
	*ret_status = 0;
	while (waitpid(gnuplot->pid, ret_status, 0) < 0) {
		if (errno == EINTR)
			continue;
		int err = errno;

		diag_error("cannot wait for gnuplot: %s", strerror(err));
		return -err;
	}
	return 0;
}

/* Ignores EPIPE from a gnuplot that has exited; its exit status tells more. */
static void end_program(struct gnuplot *gnuplot)
{
	if (gnuplot->program)
		fclose(gnuplot->program);
	gnuplot->program = NULL;
}

static void close_descriptors(struct gnuplot *gnuplot)
{
	if (gnuplot->pidfd >= 0)
		close(gnuplot->pidfd);
	close(gnuplot->output_fd);
	close(gnuplot->errors_fd);
}

void gnuplot_stop(struct gnuplot *gnuplot)
{
	struct pollfd end = {.fd = gnuplot->pidfd, .events = POLLIN};
	int status;

	/* On SIGINT, gnuplot closes its windows and exits. SIGKILL leaves windows of qt open. */
	kill(gnuplot->pid, SIGINT);
	if (gnuplot->pidfd < 0 || poll(&end, 1, STOP_TIMEOUT_MS) <= 0)
		kill(gnuplot->pid, SIGKILL);
	wait_for_end(gnuplot, &status);
	/* Close this after gnuplot's exit: flushing before could block. */
	end_program(gnuplot);
	close_descriptors(gnuplot);
}

int gnuplot_finish(struct gnuplot *gnuplot, int output_fd)
{
	int status;

	end_program(gnuplot);
	int err = wait_for_end(gnuplot, &status);
	if (status) {
		report_failure(gnuplot, status);
		err = -EIO;
	}
	if (!err && output_fd >= 0) {
		err = copy_output(gnuplot->output_fd, output_fd);
		if (err)
			diag_output_failed("the picture", -err);
	}
	close_descriptors(gnuplot);
	return err;
}

int gnuplot_check_display(const struct gnuplot *gnuplot)
{
	char messages[REASON_BYTES_MAX];

	read_messages(gnuplot, messages, sizeof(messages));
	if (!lacks_display(messages))
		return 0;
	report_failure(gnuplot, 0);
	return -ENODEV;
}

int gnuplot_finish_window(struct gnuplot *gnuplot, int signal_fd)
{
	struct pollfd fds[] = {
		{.fd = signal_fd, .events = POLLIN},
		{.fd = gnuplot->pidfd, .events = POLLIN},
	};
	int nr_ready = 0;

	fputs("pause mouse close\n", gnuplot->program);
	end_program(gnuplot);
	while (nr_ready <= 0) {
		nr_ready = poll(fds, ARRAY_SIZE(fds), DISPLAY_CHECK_MS);
		int err = nr_ready == 0 ? gnuplot_check_display(gnuplot) : 0;
		if (err) {
			gnuplot_stop(gnuplot);
			return err;
		}
	}
	if (fds[1].revents)
		return gnuplot_finish(gnuplot, -1);
	gnuplot_stop(gnuplot);
	return 0;
}

int gnuplot_terminals(char **ret)
{
	_cleanup_free_ char *names = calloc(1, REASON_BYTES_MAX);
	_cleanup_close_ int fd = memfd_create("leakplot terminals", MFD_CLOEXEC);
	struct gnuplot gnuplot = {0};

	if (!names || fd < 0) {
		diag_error("cannot ask gnuplot for its terminals: %s", strerror(errno));
		return -errno;
	}
	int err = gnuplot_start(&gnuplot, false);
	if (err)
		return err;
	fputs("set print '-'\nprint ' '.GPVAL_TERMINALS.' '\n", gnuplot.program);
	err = gnuplot_finish(&gnuplot, fd);
	if (err)
		return err;
	if (pread(fd, names, REASON_BYTES_MAX - 1, 0) < 0)
		return -errno;
	*ret = steal_ptr(names);
	return 0;
}

void gnuplot_print_escaped(FILE *program, const char *text, size_t max_chars)
{
	size_t chars = 0;

	fputc('"', program);
	for (const char *c = text; *c; c++) {
		/* In UTF-8, bytes 10xxxxxx continue a character. */
		if (((unsigned char)*c & 0xc0) != 0x80 && ++chars > max_chars) {
			fputs("...", program);
			break;
		}
		/* gnuplot expands commands and macros in strings before escapes. */
		if (*c == '`' || *c == '@')
			fprintf(program, "\\%o", (unsigned int)*c);
		else
			fprintf(program, *c == '"' || *c == '\\' ? "\\%c" : "%c", *c);
	}
	fputc('"', program);
}

void gnuplot_print_string(FILE *program, const char *text, size_t max_chars)
{
	_cleanup_free_ char *escaped = NULL;
	size_t size;
	FILE *stream = open_memstream(&escaped, &size);

	if (stream) {
		diag_print_escaped(stream, text, NULL);
		fclose(stream);
	}
	gnuplot_print_escaped(program, escaped ? escaped : "", max_chars);
}
