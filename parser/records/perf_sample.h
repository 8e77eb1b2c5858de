/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Decodes samples by their event's sample type. Checks each size against the record. */
#ifndef LEAKTOOLS_PARSER_PERF_SAMPLE_H
#define LEAKTOOLS_PARSER_PERF_SAMPLE_H

#include "parser/records/perf_events.h"

/*
 * Decodes a sample. @record->bytes must be aligned to 8, and change: the callchain is compacted in
 * place. @ret points into them; its sequence number stays 0. Returns 0, or -EINVAL if the record
 * does not match the event's attribute.
 */
int perf_sample_decode(const struct perf_event *event, const struct perf_record *record,
		       struct perf_sample *ret);

/* Finds the block of a sample without decoding it, for prefetching. Returns whether it did. */
bool perf_sample_peek_block(const struct perf_event *event, const struct perf_record *record,
			    uint64_t *ret);

#endif
