/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who traces a process (ptrace(2)): it can have no second tracer. */
#ifndef LEAKTOOLS_RECORDER_TRACER_H
#define LEAKTOOLS_RECORDER_TRACER_H

#include <stdbool.h>
#include <sys/types.h>

#define TRACER_NAME_MAX 64

/* Writes "process 4165 (strace)". Returns false if @pid has no tracer, or has ended. */
bool tracer_name(pid_t pid, char to[static TRACER_NAME_MAX]);

#endif
