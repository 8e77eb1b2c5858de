/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Turns records into perf's COMPRESSED records (Linux 6.1, tools/perf/util/zstd.c). Together they
 * hold one zstd stream, flushed at the end of each, so a reader can decode each record when it has
 * all before it. A truncated recording loses only its end.
 *
 * A COMPRESSED record holds whole records, except parts of one that is too large. So a recording
 * that ends too early ends between records.
 */
#ifndef LEAKTOOLS_RECORDER_COMPRESSOR_H
#define LEAKTOOLS_RECORDER_COMPRESSOR_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* zstd's levels, as perf record takes them. */
#define COMPRESSOR_DEFAULT_LEVEL 1
#define COMPRESSOR_MAX_LEVEL	 22

/* The most that a COMPRESSED record holds; perf allocates this much (feature COMPRESSED). */
#define COMPRESSOR_MAX_CONTENT_BYTES ((size_t)64000)

/* Room for one COMPRESSED record. */
#define COMPRESSOR_RECORD_BYTES ((size_t)UINT16_MAX)

struct compressor;

/* Returns 0, -EINVAL for a level that zstd does not have, or -ENOMEM; not reported. */
int compressor_create(int level, struct compressor **ret);
/* NULL is fine. */
void compressor_destroy(struct compressor *compressor);

/*
 * Makes one COMPRESSED record from the first of the records in @bytes. @record has room for
 * COMPRESSOR_RECORD_BYTES; *@ret_record_bytes is the size. Returns how many bytes were consumed, at
 * least one, or -ENOMEM or -EIO, not reported.
 */
ssize_t compressor_make_record(struct compressor *compressor, const char *bytes, size_t size_bytes,
			       char *record, size_t *ret_record_bytes);

/* The ratio of input to output in bytes, rounded; at least 1. */
uint32_t compressor_ratio(const struct compressor *compressor);

#endif
