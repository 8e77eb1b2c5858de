/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Opens the events for all threads of the processes, also for those created meanwhile.
 *
 * Where programs record, only side events (record_events.h) are left, and for many threads these
 * belong to CPUs: they tell of all processes, and a filter (side_filter.h) picks the records of the
 * recorded ones. So the number of descriptors is bounded. For few threads, side events belong to
 * the threads: what others do can then neither fill the rings nor cost leakrec time.
 */
#ifndef LEAKTOOLS_RECORDER_ATTACH_H
#define LEAKTOOLS_RECORDER_ATTACH_H

#include "recorder/events/record_events.h"

/*
 * Opens the events, disabled, for all threads of @pids, or of all processes if @config says so.
 * Side events that belong to CPUs are enabled at once, so that no fork goes unseen.
 * tasks.h explains how it finds threads that are created meanwhile. If it has to stop the processes
 * for that, it says so. Returns 0 or a negative errno, reported. Release with record_events_close()
 * in either case.
 */
int attach_events(struct record_events *ret, const struct probe_set *const *probes,
		  size_t nr_probes, const struct record_config *config, const pid_t *pids,
		  size_t nr_pids);

#endif
