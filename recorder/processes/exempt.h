/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Processes that backpressure never stops, by what they are: on our terminal, a job of a shell,
 * debugged, init. is_exempt() in targets.bpf.h decides the same for BPF programs; this is for
 * backpressure without BPF, and for messages.
 */
#ifndef LEAKTOOLS_RECORDER_EXEMPT_H
#define LEAKTOOLS_RECORDER_EXEMPT_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * Tells why the named process @pid is never stopped, as a part of a sentence; NULL: it may be
 * stopped. *@ret_is_stopped, unless that is NULL, is set if something else has stopped it, or it
 * has ended.
 */
const char *exempt_why(pid_t pid, pid_t own_session, bool *ret_is_stopped);

/* This process's session, if it has a terminal; else 0. */
pid_t exempt_own_session(void);

#endif
