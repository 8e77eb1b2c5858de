/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/events/event_removal.h"

#include <perf/evsel.h>

bool record_event_is_on(const struct record_event *event, const struct probe_file *file)
{
	return event->evsel && event->file == file;
}

void record_events_remove_file(struct record_events *events, const struct probe_file *file)
{
	struct record_group *group = &events->probes;

	for (size_t i = 0; i < group->nr_events; i++) {
		struct record_event *event = &group->events[i];

		if (!record_event_is_on(event, file))
			continue;
		record_event_add_totals(event, events->nr_threads, &events->removed);
		perf_evsel__close(event->evsel);
		event->evsel = NULL;
	}
}
