/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/processes/exempt.h"

#include "common/proc/process_stat.h"
#include "common/proc/process_status.h"

#include <stddef.h>
#include <unistd.h>

/* A job has a process group of its own; a shell would take its stop for Ctrl-Z. */
static bool is_job(pid_t pid, const struct process_stat *status)
{
	struct process_stat parent;

	return status->session != pid && status->parent > 1 &&
	       !process_stat_read(status->parent, &parent) && parent.group != status->group;
}

const char *exempt_why(pid_t pid, pid_t own_session, bool *ret_is_stopped)
{
	struct process_stat status;
	int err = process_stat_read(pid, &status);

	if (ret_is_stopped)
		*ret_is_stopped = err || status.state == 'T' || status.state == 't' ||
				  process_stat_is_dead(&status);
	if (pid == 1)
		return "it is process 1";
	if (process_status_tracer(pid) > 0)
		return "a debugger has it";
	if (err || !status.terminal)
		return NULL;
	if (status.session == own_session)
		return "it runs on leakrec's terminal";
	return is_job(pid, &status) ? "its shell would take that for Ctrl-Z" : NULL;
}

pid_t exempt_own_session(void)
{
	struct process_stat status;

	return !process_stat_read(getpid(), &status) && status.terminal ? status.session : 0;
}
