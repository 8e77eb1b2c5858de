/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/session/session_signals.h"

#include "common/clock.h"
#include "common/diag.h"
#include "common/interrupted.h"
#include "common/scope.h"

#include <errno.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

static const int end_signals[] = {SIGINT, SIGTERM, SIGHUP};

/* The pipe to the viewer, while signals may end the process at once; or -1. */
static volatile int planning_view_fd = -1;

/* Lets the viewer restore the terminal, which it does when its pipe closes: within a second. */
static void end_planning(int number)
{
	sigset_t set;

	close(planning_view_fd);
	alarm(1);
	waitpid(-1, NULL, 0);
	signal(number, SIG_DFL);
	raise(number);
	sigemptyset(&set);
	sigaddset(&set, number);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

void session_let_signals_end(const struct session_options *options)
{
	signal(SIGPIPE, SIG_IGN);
	/* Whoever started us may ignore it. Then waitpid() would not tell how a child ended. */
	signal(SIGCHLD, SIG_DFL);
	if (options->view_fd >= 0) {
		planning_view_fd = options->view_fd;
		for (size_t i = 0; i < ARRAY_SIZE(end_signals); i++)
			signal(end_signals[i], end_planning);
	} else if (!options->command) {
		signal(SIGINT, SIG_DFL);
		signal(SIGTERM, SIG_DFL);
	}
}

int session_open_signals(void)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_SIZE(end_signals); i++)
		sigaddset(&set, end_signals[i]);
	sigprocmask(SIG_BLOCK, &set, NULL);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		diag_error("cannot watch signals: %s", strerror(errno));
	return fd;
}

void session_consume_signals(int signal_fd)
{
	struct signalfd_siginfo info;

	while (read(signal_fd, &info, sizeof(info)) == sizeof(info))
		;
}

bool session_has_signal(const struct session *session)
{
	return is_interrupted() || (session->writer && perf_writer_interrupted(session->writer));
}

int session_check_signals(const struct session *session)
{
	return session_has_signal(session) ? -EINTR : 0;
}

void session_note_signal(struct session *session)
{
	if (!session->interrupted_ns && session_has_signal(session))
		session->interrupted_ns = clock_now_ns();
}
