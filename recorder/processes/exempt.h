/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Whom backpressure never stops, by what the process is: who has to do with our terminal or is a
 * job of a shell's, who is debugged, and init. The same as is_exempt() in targets.bpf.h, for those
 * who have no BPF, and to tell the user.
 */
#ifndef LEAKTOOLS_RECORDER_EXEMPT_H
#define LEAKTOOLS_RECORDER_EXEMPT_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * Why @pid, which was named, is never stopped, as part of a sentence; NULL: it may be.
 * *@ret_is_stopped, unless NULL: somebody else has stopped it, or it has ended.
 */
const char *exempt_why(pid_t pid, pid_t own_session, bool *ret_is_stopped);

/* This process's session, if it has a terminal; else 0. */
pid_t exempt_own_session(void);

#endif
