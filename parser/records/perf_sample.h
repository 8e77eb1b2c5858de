/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Decodes records: samples by their event's sample type, the others by their type. Each size is
 * checked against the record.
 */
#ifndef LEAKTOOLS_PARSER_PERF_SAMPLE_H
#define LEAKTOOLS_PARSER_PERF_SAMPLE_H

#include "parser/records/perf_events.h"

/*
 * Decodes a sample. @record->bytes are aligned to 8 and changed: the callchain is compacted in
 * place.
 * @ret points into them; its sequence number is left 0. Returns 0, or -EINVAL if the record does
 * not hold what the event's attribute says.
 */
int perf_sample_decode(const struct perf_event *event, const struct perf_record *record,
		       struct perf_sample *ret);

/*
 * Finds, without decoding it, the block that a sample is about, for prefetching. Returns whether it
 * did.
 */
bool perf_sample_peek_block(const struct perf_event *event, const struct perf_record *record,
			    uint64_t *ret);

#endif
