/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/output/marks.h"

#include "common/clock.h"
#include "common/diag.h"
#include "recorder/output/own_samples.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

int marks_init(struct marks *ret, uint64_t every_ns)
{
	sigset_t set;

	*ret = (struct marks){.fd = -1, .every_ns = every_ns, .next_ns = UINT64_MAX};
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	ret->fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (ret->fd >= 0)
		return 0;
	diag_error("cannot watch for SIGUSR1: %s", strerror(errno));
	return -errno;
}

void marks_deinit(struct marks *marks)
{
	if (marks->fd >= 0)
		close(marks->fd);
	marks->fd = -1;
}

int marks_describe(struct record_events *events, const struct record_config *config)
{
	int err = own_samples_describe(events, config, OWN_MARK);

	return err ? err : own_samples_describe(events, config, OWN_DOUBT);
}

void marks_start(struct marks *marks, uint64_t start_ns, uint64_t end_ns, pid_t pid)
{
	marks->pid = pid;
	marks->end_ns = end_ns;
	if (marks->every_ns)
		marks->next_ns = start_ns + marks->every_ns;
}

static int write_mark(struct marks *marks, struct perf_writer *writer, uint64_t time_ns,
		      bool by_signal)
{
	marks->nr++;
	return own_samples_write(writer, OWN_MARK, marks->pid, time_ns, by_signal, &marks->nr);
}

int marks_write_doubt(pid_t pid, uint64_t time_ns, uint64_t nr, struct perf_writer *writer)
{
	return own_samples_write(writer, OWN_DOUBT, pid, time_ns, 0, &nr);
}

int marks_write(struct marks *marks, struct perf_writer *writer)
{
	struct signalfd_siginfo signal;
	uint64_t now_ns = clock_now_ns();
	uint64_t last_ns = now_ns < marks->end_ns ? now_ns : marks->end_ns;
	int err = 0;

	while (!err && marks->next_ns <= last_ns) {
		err = write_mark(marks, writer, marks->next_ns, false);
		marks->next_ns += marks->every_ns;
	}
	if (!err && read(marks->fd, &signal, sizeof(signal)) == sizeof(signal)) {
		err = write_mark(marks, writer, now_ns, true);
		diag_note("mark %" PRIu64, marks->nr);
	}
	return err;
}
