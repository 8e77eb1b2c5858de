/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Turns records into perf's COMPRESSED records (Linux 6.1, tools/perf/util/zstd.c): all of them
 * together hold one zstd stream, flushed at the end of each, so that a reader gets out of each what
 * went into it. What is cut off at the end costs nothing that stands before.
 *
 * A COMPRESSED record holds whole records, where they are not too large for that: a recording that
 * ends too early ends between records.
 */
#ifndef LEAKTOOLS_RECORDER_COMPRESSOR_H
#define LEAKTOOLS_RECORDER_COMPRESSOR_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* zstd's levels, as perf record takes them. */
#define COMPRESSOR_DEFAULT_LEVEL 1
#define COMPRESSOR_MAX_LEVEL	 22

/* No COMPRESSED record holds more: perf allocates that much for each (feature COMPRESSED). */
#define COMPRESSOR_MAX_CONTENT_BYTES ((size_t)64000)

/* Room for one COMPRESSED record. */
#define COMPRESSOR_RECORD_BYTES ((size_t)UINT16_MAX)

struct compressor;

/* Returns 0, -EINVAL for a level that zstd does not have, or -ENOMEM; not reported. */
int compressor_create(int level, struct compressor **ret);
/* NULL is fine. */
void compressor_destroy(struct compressor *compressor);

/*
 * Makes one COMPRESSED record at @record, of COMPRESSOR_RECORD_BYTES, from the first of the
 * @size_bytes at @bytes, which are records. Returns how many bytes it took, at least one, and the
 * record's size in @ret_record_bytes; or -ENOMEM or -EIO, not reported.
 */
ssize_t compressor_make_record(struct compressor *compressor, const char *bytes, size_t size_bytes,
			       char *record, size_t *ret_record_bytes);

/* How many bytes went in for each that came out, rounded; at least 1. */
uint32_t compressor_ratio(const struct compressor *compressor);

#endif
