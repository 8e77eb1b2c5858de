/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "top/top_view.h"

#include "common/broker/broker.h"
#include "common/diag.h"
#include "common/sandbox/unprivileged.h"
#include "common/scope.h"
#include "top/top_terminal.h"
#include "top/top_viewer.h"
#include "unwind/modules/file_services.h"
#include "unwind/names/jit_names.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

/* Leaves the alternate screen, shows the cursor, resets attributes (xterm and compatible). */
#define LEAVE_SCREEN "\033[?1049l\033[?25h\033[0m\r\n"

static int signal_recorder(void *context, const struct broker_request *request, int *ret_fd)
{
	const pid_t *recorder = context;

	(void)ret_fd;
	if (request->number != SIGINT && request->number != SIGUSR1)
		return -EINVAL;
	return kill(*recorder, (int)request->number) ? -errno : 0;
}

/* The broker ends when the viewer does, which signals of the terminal do not end. */
static int run_broker(pid_t recorder, int socket_fd)
{
	static const int ignored[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGTSTP};
	struct broker_service served[BROKER_NR_OPS] = {0};

	prctl(PR_SET_NAME, "leak-broker");
	for (size_t i = 0; i < ARRAY_SIZE(ignored); i++)
		signal(ignored[i], SIG_IGN);
	unprivileged_keep_only((int[]){STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO, socket_fd}, 4);
	/* As root: it sends signals to the recorder. */
	if (unprivileged_read_only(false))
		diag_warn("the view keeps its capabilities: they cannot be dropped");
	file_services_add(served, NULL);
	served[BROKER_OPEN_JIT_NAMES].serve = jit_names_serve;
	served[BROKER_SIGNAL_RECORDER] = (struct broker_service){signal_recorder, &recorder};
#ifndef __SANITIZE_ADDRESS__ /* it looks for leaks by a thread that traces the others */
	unprivileged_limit_broker(recorder);
#endif
	broker_serve(socket_fd, served);
	return DIAG_EXIT_OK;
}

static void __attribute__((noreturn))
run_child(const char *title, const struct live_status *status, int stream_fd, int messages_fd)
{
	const struct top_viewer_options options = {
		.title = title,
		.stream_fd = stream_fd,
		.messages_fd = messages_fd,
		.status = status,
	};
	const pid_t recorder = getppid();
	int socket_fd;
	pid_t broker;

	prctl(PR_SET_NAME, "leak-viewer");
	fcntl(messages_fd, F_SETFL, O_NONBLOCK);
	broker = broker_fork(&socket_fd);
	if (broker < 0)
		exit(DIAG_EXIT_FAILED);
	if (broker == 0)
		exit(run_broker(recorder, socket_fd));
	unprivileged_keep_only((int[]){STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO, socket_fd,
				       stream_fd, messages_fd},
			       6);
	exit(top_viewer_run(&options));
}

static int start(const char *title, struct top_view *view)
{
	_cleanup_close_ int stream_read = -1, stream_write = -1;
	_cleanup_close_ int messages_read = -1, messages_write = -1;
	int stream[2], messages[2];

	view->status = mmap(NULL, sizeof(*view->status), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (view->status == MAP_FAILED || pipe2(stream, O_CLOEXEC) < 0)
		return -errno;
	stream_read = stream[0];
	stream_write = stream[1];
	if (pipe2(messages, O_CLOEXEC) < 0)
		return -errno;
	messages_read = messages[0];
	messages_write = messages[1];
	/* A full pipe must not block the recorder, or it would not react to Ctrl-C. */
	if (fcntl(stream_write, F_SETFL, O_NONBLOCK) < 0)
		return -errno;
	view->pid = fork();
	if (view->pid < 0)
		return -errno;
	if (view->pid == 0) {
		close(stream_write);
		close(messages_write);
		run_child(title, view->status, stream_read, messages_read);
	}
	view->stderr_fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	dup2(messages_write, STDERR_FILENO);
	view->stream_fd = steal_fd(stream_write);
	/* A stopped recorder would leave the recorded processes stopped, too. */
	signal(SIGTSTP, SIG_IGN);
	return 0;
}

int top_view_start(const char *title, struct top_view *ret)
{
	int err;

	*ret = (struct top_view){.pid = -1, .stream_fd = -1, .stderr_fd = -1};
	err = top_terminal_check();
	if (err)
		return err;
	if (tcgetattr(STDIN_FILENO, &ret->terminal)) {
		err = -errno;
		diag_error("cannot read the settings of the terminal: %s", strerror(-err));
		return err;
	}
	fflush(NULL);
	err = start(title, ret);
	if (err)
		diag_error("cannot show the recording: %s", strerror(-err));
	return err;
}

int top_view_finish(struct top_view *view)
{
	int status = 0;

	if (view->stderr_fd >= 0) {
		fflush(stderr);
		dup2(view->stderr_fd, STDERR_FILENO);
		close(view->stderr_fd);
	}
	if (view->pid <= 0)
		return DIAG_EXIT_FAILED;
	while (waitpid(view->pid, &status, 0) < 0 && errno == EINTR)
		;
	tcsetattr(STDIN_FILENO, TCSANOW, &view->terminal);
	if (!WIFSIGNALED(status))
		return WEXITSTATUS(status);
	if (write(STDOUT_FILENO, LEAVE_SCREEN, sizeof(LEAVE_SCREEN) - 1) < 0)
		return DIAG_EXIT_FAILED;
	diag_error("the viewer was killed by signal %d", WTERMSIG(status));
	return DIAG_EXIT_FAILED;
}
