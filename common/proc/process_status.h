/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What /proc/PID/status says about a process. Reports nothing. */
#ifndef LEAKTOOLS_COMMON_PROCESS_STATUS_H
#define LEAKTOOLS_COMMON_PROCESS_STATUS_H

#include <stdint.h>
#include <sys/types.h>

struct process_status {
	pid_t tgid;    /* the process that this is a thread of */
	pid_t tracer;  /* 0: none */
	pid_t own_pid; /* in the innermost of its PID namespaces */
	uid_t effective_uid;
	uint64_t pending_signals; /* not delivered to this thread or the process yet; bit 0: 1 */
	uint64_t code_bytes;	  /* mapped as code; 0: a kernel thread, or it is exiting */
};

/*
 * Reads /proc/PID/status; @pid may also be a thread. Safe in signal handlers. Returns 0, -ESRCH if
 * there is no such process, or another negative errno.
 */
int process_status_read(pid_t pid, struct process_status *ret);

/* The process that traces @pid, 0 if there is none, or a negative errno. Safe in signal handlers.
 */
pid_t process_status_tracer(pid_t pid);

#endif
