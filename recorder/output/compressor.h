/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Turns records into perf's COMPRESSED records (Linux 6.1, tools/perf/util/zstd.c). Together they
 * hold one zstd stream, flushed at the end of each, so a reader can decode each record when it has
 * all before it. A truncated recording loses only its end.
 *
 * At COMPRESSOR_FAST_LEVEL each of them is a zstd frame of its own. Then zstd neither copies the
 * records nor keeps what came before in the CPU's caches, which takes a third off leakrec's CPU
 * time. Files of programs with many stacks become a quarter larger.
 */
#ifndef LEAKTOOLS_RECORDER_COMPRESSOR_H
#define LEAKTOOLS_RECORDER_COMPRESSOR_H

#include <stddef.h>
#include <stdint.h>

/* zstd's levels, as perf record takes them. */
#define COMPRESSOR_DEFAULT_LEVEL 1
#define COMPRESSOR_MAX_LEVEL	 22
#define COMPRESSOR_FAST_LEVEL	 COMPRESSOR_DEFAULT_LEVEL

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
 * Makes one COMPRESSED record of @size_bytes, at most COMPRESSOR_MAX_CONTENT_BYTES. @record has
 * room for COMPRESSOR_RECORD_BYTES; *@ret_record_bytes is the size. Returns 0, -ENOMEM or -EIO, not
 * reported.
 */
int compressor_make_record(struct compressor *compressor, const char *bytes, size_t size_bytes,
			   char *record, size_t *ret_record_bytes);

/* The ratio of input to output in bytes, rounded; at least 1. */
uint32_t compressor_ratio(const struct compressor *compressor);

#endif
