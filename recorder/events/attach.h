/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Opens the events for every thread of the processes, so that none created meanwhile is missed. */
#ifndef LEAKTOOLS_RECORDER_ATTACH_H
#define LEAKTOOLS_RECORDER_ATTACH_H

#include "recorder/events/record_events.h"

/*
 * Opens the events, disabled, for all threads of @pids, or where @config says so of all processes;
 * see tasks.h for how threads that are born meanwhile are not missed. Where that takes holding the
 * processes still for a moment, it says so. Returns 0 or a negative errno, reported. Release with
 * record_events_close() in either case.
 */
int attach_events(struct record_events *ret, const struct probe_set *const *probes,
		  size_t nr_probes, const struct record_config *config, const pid_t *pids,
		  size_t nr_pids);

#endif
