/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Decodes the records that are no samples: mappings, tasks, command names, build-ids. Each size is
 * checked against the record, each string must end within it.
 *
 * @body_bytes is the record's size without its trailer. Functions return 0, or -EINVAL if the
 * record is malformed (nothing is reported). They leave the origin alone, but for FORK's and EXIT's
 * own time where the origin has none. Strings point into the record.
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

/* A BUILD_ID record, or an entry of the feature section, of @size_bytes at @bytes. */
int perf_decode_build_id(const uint8_t *bytes, size_t size_bytes, struct perf_build_id *ret);

#endif
