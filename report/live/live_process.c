/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/live/live_process.h"

#include "common/broker/broker.h"
#include "common/diag.h"
#include "common/elf/own_mounts.h"
#include "common/output_file.h"
#include "common/sandbox/unprivileged.h"
#include "common/scope.h"
#include "report/live/live_parser.h"
#include "report/live/live_state.h"
#include "report/live/reported_causes.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define FINISH_MS 10000

/* Of the machine's memory, and at most. */
#define MEMORY_SHARE	 4
#define MAX_MEMORY_BYTES ((rlim_t)4 << 30)
/* 0 to 1000: the kernel ends this process before others when memory is exhausted. */
#define OOM_SCORE_ADJ "800"

/* --- The child --- */

/* Data, not address space: mapped files take none. Not under ASan, whose memory is data. */
static void limit_memory(void)
{
#ifndef __SANITIZE_ADDRESS__
	rlim_t bytes =
		(rlim_t)sysconf(_SC_PHYS_PAGES) * (rlim_t)sysconf(_SC_PAGESIZE) / MEMORY_SHARE;
	struct rlimit limit;

	limit.rlim_cur = bytes < MAX_MEMORY_BYTES ? bytes : MAX_MEMORY_BYTES;
	limit.rlim_max = limit.rlim_cur;
	setrlimit(RLIMIT_DATA, &limit);
#endif
}

static void prefer_in_oom(void)
{
	_cleanup_close_ int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd >= 0)
		output_write_all(fd, OOM_SCORE_ADJ, sizeof(OOM_SCORE_ADJ) - 1);
}

/*
 * Signals of the terminal and of a service's end are for the recorder: this process ends when the
 * recording does.
 */
static void ignore_signals(void)
{
	static const int ignored[] = {SIGINT,  SIGQUIT, SIGTERM, SIGHUP,
				      SIGTSTP, SIGPIPE, SIGUSR1, SIGUSR2};

	for (size_t i = 0; i < ARRAY_SIZE(ignored); i++)
		signal(ignored[i], SIG_IGN);
}

/* AddressSanitizer looks for leaks by a thread that traces the others, which none may. */
static int give_up_rights(void)
{
#ifdef __SANITIZE_ADDRESS__
	return 0;
#else
	own_mounts_note();
	return unprivileged_confine(false);
#endif
}

static void __attribute__((noreturn))
run_child(const struct live_parser_options *options, const struct live_services *services)
{
	int socket_fd;
	pid_t broker;

	prctl(PR_SET_NAME, "leak-live");
	ignore_signals();
	broker = broker_fork(&socket_fd);
	if (broker == 0) {
		close(options->stream_fd);
		close(options->done_fd);
		exit(live_services_run(services, socket_fd));
	}
	prefer_in_oom();
	limit_memory();
	unprivileged_keep_only((int[]){STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO, socket_fd,
				       options->stream_fd, options->done_fd},
			       6);
	exit(broker < 0 || give_up_rights() ? DIAG_EXIT_FAILED : live_parser_run(options));
}

/* --- The recorder --- */

/* Opens the directory of a file that will be replaced again and again. */
static int open_metrics(const char *path, struct live_output *ret)
{
	_cleanup_free_ char *for_dir = strdup(path);
	struct stat st;
	int err;

	ret->path = path;
	ret->name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	if (!for_dir)
		return -ENOMEM;
	ret->dir_fd = open(dirname(for_dir), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	err = ret->dir_fd < 0 ? -errno : 0;
	if (!err && !*ret->name)
		err = -EISDIR;
	if (!err && fstatat(ret->dir_fd, ret->name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    !S_ISREG(st.st_mode))
		err = S_ISLNK(st.st_mode) ? -ELOOP : -EEXIST;
	if (err)
		diag_error("cannot write %s: %s", path, strerror(-err));
	return err;
}

static int open_outputs(const struct live_options *options, struct live_services *ret)
{
	struct live_output *state = &ret->outputs[LIVE_STATE];
	int err = 0;

	if (options->dir) {
		state->path = options->dir;
		state->name = LIVE_STATE_NAME;
		state->dir_fd = output_dir_open(options->dir);
		err = state->dir_fd < 0 ? state->dir_fd : 0;
	}
	if (!err && options->dir && options->on_leak) {
		ret->outputs[LIVE_REPORTED] =
			(struct live_output){fcntl(state->dir_fd, F_DUPFD_CLOEXEC, 0), options->dir,
					     REPORTED_CAUSES_NAME};
		err = ret->outputs[LIVE_REPORTED].dir_fd < 0 ? -errno : 0;
		if (err)
			diag_error("cannot open %s: %s", options->dir, strerror(-err));
	}
	if (!err && options->metrics)
		err = open_metrics(options->metrics, &ret->outputs[LIVE_METRICS]);
	return err;
}

/* "redis" of /var/lib/prometheus/node-exporter/redis.prom */
static char *recording_name(const char *metrics)
{
	const char *slash = strrchr(metrics, '/');
	char *name = strdup(slash ? slash + 1 : metrics);
	size_t len = name ? strlen(name) : 0;

	if (len > 5 && strcmp(name + len - 5, ".prom") == 0)
		name[len - 5] = '\0';
	return name;
}

/* Starts the process with @parser. Returns 0 or a negative errno, not reported. */
static int start(struct live_parser_options *parser, const struct live_services *services,
		 struct live_process *ret)
{
	_cleanup_close_ int stream_read = -1, stream_write = -1, done_read = -1, done_write = -1;
	int stream[2], done[2];

	ret->status = mmap(NULL, sizeof(*ret->status), PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (ret->status == MAP_FAILED || pipe2(stream, O_CLOEXEC) < 0)
		return -errno;
	stream_read = stream[0];
	stream_write = stream[1];
	if (pipe2(done, O_CLOEXEC) < 0)
		return -errno;
	done_read = done[0];
	done_write = done[1];
	if (fcntl(stream_write, F_SETFL, O_NONBLOCK) < 0)
		return -errno;
	fflush(NULL);
	ret->pid = fork();
	if (ret->pid < 0)
		return -errno;
	if (ret->pid == 0) {
		close(stream_write);
		close(done_read);
		parser->stream_fd = stream_read;
		parser->done_fd = done_write;
		parser->status = ret->status;
		run_child(parser, services);
	}
	ret->stream_fd = steal_fd(stream_write);
	ret->done_fd = steal_fd(done_read);
	return 0;
}

int live_process_start(const struct live_options *options, struct live_process *ret)
{
	struct live_services services = {
		.outputs = {{.dir_fd = -1}, {.dir_fd = -1}, {.dir_fd = -1}},
		.on_leak = options->on_leak,
	};
	struct live_parser_options parser = {
		.every_ns = options->every_ns,
		.on_leak = options->on_leak,
		.paths = {[LIVE_STATE] = options->dir,
			  [LIVE_METRICS] = options->metrics,
			  [LIVE_REPORTED] = options->on_leak ? options->dir : NULL},
	};
	_cleanup_free_ char *recording = options->metrics ? recording_name(options->metrics) : NULL;
	int err = open_outputs(options, &services);

	*ret = (struct live_process){.pid = -1, .stream_fd = -1, .done_fd = -1};
	if (!err) {
		parser.recording = recording ? recording : "";
		err = start(&parser, &services, ret);
		if (err)
			diag_error("cannot start the live parser: %s", strerror(-err));
	}
	for (size_t i = 0; i < ARRAY_SIZE(services.outputs); i++)
		if (services.outputs[i].dir_fd >= 0)
			close(services.outputs[i].dir_fd);
	return err;
}

/* The process ends without having written its last state. */
static int report_end(pid_t pid)
{
	int status;

	/* It closes its descriptors before it can be waited for. */
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	if (WIFSIGNALED(status))
		diag_warn(
			"the live parser was killed by signal %d: its state is of an earlier time",
			WTERMSIG(status));
	return -EIO;
}

int live_process_finish(struct live_process *process)
{
	struct pollfd fd = {.fd = process->done_fd, .events = POLLIN};
	bool is_done;
	char byte;

	while (poll(&fd, 1, FINISH_MS) < 0 && errno == EINTR)
		;
	is_done = fd.revents && read(process->done_fd, &byte, 1) == 1;
	close(process->done_fd);
	if (!fd.revents)
		diag_warn("the live parser is still busy; it ends when it has written its state");
	return is_done || !fd.revents ? 0 : report_end(process->pid);
}
