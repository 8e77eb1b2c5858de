/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Opens the events for all threads of the processes, also for those created meanwhile. */
#ifndef LEAKTOOLS_RECORDER_ATTACH_H
#define LEAKTOOLS_RECORDER_ATTACH_H

#include "recorder/events/record_events.h"

/*
 * Opens the events, disabled, for all threads of @pids, or of all processes if @config says so.
 * tasks.h explains how it finds threads that are created meanwhile. If it has to stop the processes
 * for that, it says so. Returns 0 or a negative errno, reported. Release with record_events_close()
 * in either case.
 */
int attach_events(struct record_events *ret, const struct probe_set *const *probes,
		  size_t nr_probes, const struct record_config *config, const pid_t *pids,
		  size_t nr_pids);

#endif
