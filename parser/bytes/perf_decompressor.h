/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The zstd stream in a recording's COMPRESSED records. It decompresses into the caller's buffers,
 * so that a small record with large contents takes no more memory than others. zstd itself takes
 * 128 MiB at most, for back references.
 */
#ifndef LEAKTOOLS_PARSER_PERF_DECOMPRESSOR_H
#define LEAKTOOLS_PARSER_PERF_DECOMPRESSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <zstd.h>

struct perf_decompressor {
	const char *name;   /* of the recording, for messages */
	uint64_t offset;    /* of the current record, in the recording */
	ZSTD_DCtx *context; /* NULL until the first record */
	ZSTD_inBuffer input;
	bool more;	       /* the last buffer was filled: zstd may have more output */
	size_t expected_bytes; /* the bytes that zstd needs next, at least; 0: the stream has ended
				*/
};

/* @name stays the caller's. Free with _deinit(). */
void perf_decompressor_init(struct perf_decompressor *decompressor, const char *name);
void perf_decompressor_deinit(struct perf_decompressor *decompressor);

/*
 * Passes the next COMPRESSED or COMPRESSED2 record, after the one before was read. @bytes, the
 * whole record of @size_bytes at @offset of the recording, must stay until this one was read.
 * Returns 0, -EINVAL for a malformed record (reported), or -ENOMEM.
 */
int perf_decompressor_feed(struct perf_decompressor *decompressor, uint32_t type,
			   const uint8_t *bytes, size_t size_bytes, uint64_t offset);

/*
 * Decompresses into @buffer. Returns the number of bytes, 0 at the end of the record, -EINVAL if it
 * is not a zstd stream (reported), or -ENOMEM.
 */
ssize_t perf_decompressor_read(struct perf_decompressor *decompressor, void *buffer,
			       size_t size_bytes);

/*
 * True if the stream ends inside a block so far. The last record of a complete recording ends a
 * block. perf record -z sometimes drops what does not fit its buffer at the end (Linux 6.1).
 */
bool perf_decompressor_is_inside(const struct perf_decompressor *decompressor);

#endif
