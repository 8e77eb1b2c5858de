/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "plot/gnuplot/gnuplot.h"

#include "common/broker/broker.h"
#include "common/diag.h"
#include "common/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define REASON_BYTES_MAX 4096
#define DISPLAY_CHECK_MS 500

static int report_start(int err)
{
	if (err == -ENOENT)
		diag_error("gnuplot is not installed; apt-get install gnuplot-nox (pictures) or "
			   "gnuplot-qt (windows too)");
	else if (err == -EACCES)
		diag_error("cannot start gnuplot: all users must be able to execute it: %s",
			   strerror(-err));
	else if (err != -EIO || !broker_is_used()) /* the broker's end is reported */
		diag_error("cannot start gnuplot: %s", strerror(-err));
	return err;
}

int gnuplot_start(struct gnuplot *gnuplot, enum gnuplot_group group)
{
	_cleanup_close_ int output_fd = memfd_create("leakplot output", MFD_CLOEXEC);
	_cleanup_close_ int errors_fd = memfd_create("leakplot errors", MFD_CLOEXEC);
	_cleanup_close_ int read_fd = -1, write_fd = -1;
	_cleanup_fclose_ FILE *program = NULL;
	int pipe_fds[2], err;

	if (output_fd < 0 || errors_fd < 0 || pipe2(pipe_fds, O_CLOEXEC) < 0)
		return report_start(-errno);
	read_fd = pipe_fds[0];
	write_fd = pipe_fds[1];
	/* gnuplot opens the pipe by its name, as another user. Only who has it can. */
	if (geteuid() == 0)
		fchmod(read_fd, 0444);
	program = fdopen(write_fd, "w");
	if (!program)
		return report_start(-errno);
	/* NOLINTNEXTLINE(clang-analyzer-deadcode.DeadStores): its scope guard reads it */
	write_fd = -1;
	err = gnuplot_process_start(group, (int[]){-1, output_fd, errors_fd, read_fd},
				    &gnuplot->process);
	if (err)
		return report_start(err);
	gnuplot->program = steal_ptr(program);
	gnuplot->output_fd = steal_fd(output_fd);
	gnuplot->errors_fd = steal_fd(errors_fd);
	return 0;
}

/*
 * The line of gnuplot's messages with the error: one that begins with the script's name and line,
 * as gnuplot marks errors, else the last line.
 */
static const char *find_reason(char *messages)
{
	static const char mark[] = "\"" GNUPLOT_SCRIPT_FILE "\" line ";
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

/* Ignores EPIPE from a gnuplot that has exited; its exit status tells more. */
static void end_program(struct gnuplot *gnuplot)
{
	if (gnuplot->program)
		fclose(gnuplot->program);
	gnuplot->program = NULL;
}

static void close_descriptors(struct gnuplot *gnuplot)
{
	close(gnuplot->output_fd);
	close(gnuplot->errors_fd);
}

void gnuplot_stop(struct gnuplot *gnuplot)
{
	gnuplot_process_end(&gnuplot->process, true);
	/* Close this after gnuplot's exit: flushing before could block. */
	end_program(gnuplot);
	close_descriptors(gnuplot);
}

int gnuplot_wait(struct gnuplot *gnuplot)
{
	int status, err;

	end_program(gnuplot);
	status = gnuplot_process_end(&gnuplot->process, false);
	err = status < 0 ? status : 0;
	if (err) {
		diag_error("cannot wait for gnuplot: %s", strerror(-err));
	} else if (status) {
		report_failure(gnuplot, status);
		err = -EIO;
	}
	if (err)
		close_descriptors(gnuplot);
	return err;
}

int gnuplot_take_output(struct gnuplot *gnuplot, int output_fd)
{
	int err = output_fd < 0 ? 0 : copy_output(gnuplot->output_fd, output_fd);

	if (err)
		diag_output_failed("the picture", -err);
	close_descriptors(gnuplot);
	return err;
}

int gnuplot_finish(struct gnuplot *gnuplot, int output_fd)
{
	int err = gnuplot_wait(gnuplot);

	return err ? err : gnuplot_take_output(gnuplot, output_fd);
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
		{.fd = gnuplot->process.pidfd, .events = POLLIN},
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
	int err = gnuplot_start(&gnuplot, GNUPLOT_OURS);
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
