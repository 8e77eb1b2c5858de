/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Ends the perf events of one file while the others go on recording. */
#ifndef LEAKTOOLS_RECORDER_EVENT_REMOVAL_H
#define LEAKTOOLS_RECORDER_EVENT_REMOVAL_H

#include "recorder/events/record_events.h"

/* True if the event is on a probe of @file. */
bool record_event_is_on(const struct record_event *event, const struct probe_file *file);

/*
 * Closes the events on the probes of @file, also in children, and keeps their totals. Their samples
 * stay in the rings, which belong to another event.
 */
void record_events_remove_file(struct record_events *events, const struct probe_file *file);

#endif
