/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The zstd stream that a recording's COMPRESSED records hold together. Its bytes are given out
 * through buffers of the caller's, so that a small record that is large inside takes no more memory
 * than another; zstd itself takes 128 MiB at most, for what the stream may refer back to.
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
	uint64_t offset;    /* in the recording: of the record that is being read */
	ZSTD_DCtx *context; /* NULL until the first record */
	ZSTD_inBuffer input;
	bool more;	       /* the last buffer was filled: there may be more without input */
	size_t expected_bytes; /* what zstd wants to have next, at least; 0: the stream has ended */
};

/* @name stays the caller's. Release with _deinit(). */
void perf_decompressor_init(struct perf_decompressor *decompressor, const char *name);
void perf_decompressor_deinit(struct perf_decompressor *decompressor);

/*
 * Gives it the next COMPRESSED or COMPRESSED2 record, when the one before is read. @bytes, the
 * whole record of @size_bytes at @offset of the recording, must stay until then. Returns 0; -EINVAL
 * for a record that cannot be, reported; or -ENOMEM.
 */
int perf_decompressor_feed(struct perf_decompressor *decompressor, uint32_t type,
			   const uint8_t *bytes, size_t size_bytes, uint64_t offset);

/*
 * Decompresses into @buffer. Returns the number of bytes, 0 where the record is read, -EINVAL for
 * what is no zstd stream, reported, or -ENOMEM.
 */
ssize_t perf_decompressor_read(struct perf_decompressor *decompressor, void *buffer,
			       size_t size_bytes);

/*
 * True if what was read so far ends inside a block, the rest of which is to come. The last record
 * of a whole recording ends one; perf record -z is known to leave out what does not fit its buffer
 * in the end (Linux 6.1).
 */
bool perf_decompressor_is_inside(const struct perf_decompressor *decompressor);

#endif
