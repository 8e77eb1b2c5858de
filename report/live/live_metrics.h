/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * leakrec --metrics: the state of a recording as metrics in Prometheus' text format 0.0.4, for the
 * textfile collector of node_exporter (docs/live.md has the list).
 *
 * A cause's labels are the function that it is named after and its module: they stay if the program
 * or the recording is started again. Causes with the same labels are one. A cause gets labels when
 * it is a leak for the first time, and keeps them, so that no series has gaps; there are at most
 * LIVE_METRICS_MAX_CAUSES.
 */
#ifndef LEAKTOOLS_REPORT_LIVE_METRICS_H
#define LEAKTOOLS_REPORT_LIVE_METRICS_H

#include "common/live_status.h"
#include "parser/verdicts/leak_report.h"

#define LIVE_METRICS_MAX_CAUSES 32

struct live_metrics;

/*
 * @recording: the value of the label that distinguishes recordings. Returns 0 or -ENOMEM. They are
 * never freed.
 */
int live_metrics_create(const char *recording, struct live_metrics **ret);

/* Writes the text to memory, which the caller frees. Returns 0 or -ENOMEM. */
int live_metrics_text(struct live_metrics *metrics, const struct leak_report *report,
		      const struct live_status *status, char **ret, size_t *ret_size);

#endif
