/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/processes/realtime.h"

struct realtime realtime_begin(void)
{
	struct realtime before = {.policy = sched_getscheduler(0)};
	struct sched_param lowest = {.sched_priority = sched_get_priority_min(SCHED_RR)};

	/* The lowest one: the watchdog (backpressure/watchdog.c) and the system's own go first. */
	if (before.policy < 0 || sched_getparam(0, &before.param) != 0 ||
	    sched_setscheduler(0, SCHED_RR, &lowest) != 0)
		before.policy = -1;
	return before;
}

void realtime_end(const struct realtime *before)
{
	if (before->policy >= 0)
		sched_setscheduler(0, before->policy, &before->param);
}
