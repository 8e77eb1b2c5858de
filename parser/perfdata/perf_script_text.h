/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads the text that `perf script` prints, for those who have nothing else, as if it were the
 * recording it was made from (docs/perf-data.md tells what it lacks).
 *
 * Its frames are places in files. Each file is given a range of addresses that no process has, and
 * each process a mapping of it there; what perf called a place is handed on, too, for files that
 * cannot be found.
 */
#ifndef LEAKTOOLS_PARSER_PERF_SCRIPT_TEXT_H
#define LEAKTOOLS_PARSER_PERF_SCRIPT_TEXT_H

#include "parser/bytes/perf_source.h"
#include "parser/perfdata/perf_input_stats.h"
#include "parser/records/perf_event_types.h"

/* Whether a recording that begins like this may be one. */
bool perf_script_text_begins(const uint8_t *head, size_t head_bytes);

/*
 * Reads all of @source, of which the @head was read already. Returns as perf_input_read(), and
 * counts in @stats: lines as records, events as samples.
 */
int perf_script_text_read(struct perf_source *source, const uint8_t *head, size_t head_bytes,
			  const struct perf_consumer *consumer, struct perf_input_stats *stats);

#endif
