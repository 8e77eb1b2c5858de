/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The contents of perf.data's feature sections: the formats of the recorded tracepoints, and the
 * facts about the recording and its computer (Linux 6.1, tools/perf/util/header.c and
 * trace-event-info.c).
 */
#ifndef LEAKTOOLS_RECORDER_PERF_FEATURES_H
#define LEAKTOOLS_RECORDER_PERF_FEATURES_H

#include "recorder/output/byte_buffer.h"
#include "common/perf_disk.h"
#include "recorder/events/record_events.h"

#define PERF_FEATURES_MAX 32

/* Sections by feature number; an empty one is not written. */
struct perf_features {
	struct byte_buffer sections[PERF_FEATURES_MAX];
};

/*
 * Collects all sections that are known before recording. Returns 0 or a negative errno, reported.
 * Release with perf_features_deinit() in either case.
 */
int perf_features_collect(struct perf_features *ret, const struct record_events *events, int argc,
			  char *const *argv);

/*
 * Returns the text of a tracepoint's format file, which the caller frees; NULL if it cannot be read
 * (reported) or out of memory.
 */
char *perf_features_event_format(const struct record_event *event);

void perf_features_deinit(struct perf_features *features);

#endif
