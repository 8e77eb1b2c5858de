/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Decodes records that are not samples: mappings, tasks, command names, build-ids. Checks each size
 * against the record, and that each string ends within it.
 *
 * @body_bytes is the record's size without its trailer. Functions return 0, or -EINVAL for a
 * malformed record (not reported). They do not change the origin, except that FORK and EXIT give
 * their own time to an origin without one. Strings point into the record.
 */
#ifndef LEAKTOOLS_PARSER_PERF_SIDE_RECORDS_H
#define LEAKTOOLS_PARSER_PERF_SIDE_RECORDS_H

#include "parser/bytes/perf_chunks.h"
#include "parser/records/perf_event_types.h"

/* MMAP, MMAP2. */
int perf_decode_mmap(const struct perf_record *record, size_t body_bytes,
		     struct perf_mmap_record *ret);
int perf_decode_task(const struct perf_record *record, size_t body_bytes,
		     struct perf_task_record *ret);
int perf_decode_comm(const struct perf_record *record, size_t body_bytes,
		     struct perf_comm_record *ret);

struct perf_build_id {
	const char *path;
	uint8_t build_id[BUILD_ID_MAX];
	uint8_t size;
	bool is_kernel;
};

/* Decodes a BUILD_ID record or an entry of the feature section. */
int perf_decode_build_id(const uint8_t *bytes, size_t size_bytes, struct perf_build_id *ret);

#endif
