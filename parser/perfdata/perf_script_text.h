/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads perf script's text as if it were the recording itself, for users who have nothing else
 * (docs/perf-data.md lists what it lacks).
 *
 * Its frames are positions in files. Each file gets a range of addresses that no process uses, and
 * each process maps the file there. perf's own names of positions are passed on, for files that
 * cannot be found.
 */
#ifndef LEAKTOOLS_PARSER_PERF_SCRIPT_TEXT_H
#define LEAKTOOLS_PARSER_PERF_SCRIPT_TEXT_H

#include "parser/bytes/perf_source.h"
#include "parser/perfdata/perf_input_stats.h"
#include "parser/records/perf_event_types.h"

/* True if a recording that begins like this may be such a text. */
bool perf_script_text_begins(const uint8_t *head, size_t head_bytes);

/*
 * Reads the rest of @source, whose @head was read already. Returns as perf_input_read(). Counts in
 * @stats: lines as records, events as samples.
 */
int perf_script_text_read(struct perf_source *source, const uint8_t *head, size_t head_bytes,
			  const struct perf_consumer *consumer, struct perf_input_stats *stats);

#endif
