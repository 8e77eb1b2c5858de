/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "plot/gnuplot/end_signals.h"

#include "common/diag.h"

#include <errno.h>
#include <signal.h>
#include <sys/signalfd.h>

int end_signals_open(void)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	sigprocmask(SIG_BLOCK, &signals, NULL);

	int fd = signalfd(-1, &signals, SFD_CLOEXEC);
	if (fd < 0) {
		int err = errno;

		diag_error("cannot wait for signals: %s", strerror(err));
		return -err;
	}
	return fd;
}
