/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Lets this thread, and the processes that it starts meanwhile, run before all others.
 *
 * While the kernel places or removes the probes of a window, the target hits those that stand. Each
 * one takes microseconds, unless the machine is busy and the thread has to wait for a CPU between
 * two of them: then that costs the target more than the window itself.
 */
#ifndef LEAKTOOLS_RECORDER_REALTIME_H
#define LEAKTOOLS_RECORDER_REALTIME_H

#include <sched.h>

struct realtime {
	int policy; /* before; -1: nothing was changed */
	struct sched_param param;
};

/* Without the right to do so, nothing changes. Don't do long work until realtime_end(). */
struct realtime realtime_begin(void);
void realtime_end(const struct realtime *before);

#endif
