/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The bytes of a recording: a regular file, read from its beginning wherever its offset stands, or
 * a pipe. A pipe that carries a file with a table of contents is copied to a temporary file first.
 * Or what the compressed records of a recording hold: that ends with each of them and goes on with
 * the next.
 *
 * A file that nobody else can change is mapped (file_window.h), others are read.
 */
#ifndef LEAKTOOLS_PARSER_PERF_SOURCE_H
#define LEAKTOOLS_PARSER_PERF_SOURCE_H

#include "parser/bytes/file_window.h"
#include "parser/bytes/perf_decompressor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct perf_source {
	int fd;		  /* the caller's, or spool_fd */
	int spool_fd;	  /* -1: none */
	const char *name; /* for messages */
	bool seekable;
	bool mappable;
	volatile sig_atomic_t is_cut;		/* what a window showed is not what the file had */
	uint64_t size_bytes;			/* seekable only */
	uint64_t position;			/* of the next sequential read */
	struct perf_decompressor *decompressor; /* instead of fd; NULL: none */
};

/* Reports nothing; cannot fail. @fd and @name stay the caller's. Release with _deinit(). */
void perf_source_init(struct perf_source *source, int fd, const char *name);
/* The same for what comes out of @decompressor, which stays the caller's. */
void perf_source_init_compressed(struct perf_source *source,
				 struct perf_decompressor *decompressor);
void perf_source_deinit(struct perf_source *source);

/*
 * Reads the next bytes, at least one where there are any. Returns how many, 0 at the end, or a
 * negative errno after reporting it.
 */
ssize_t perf_source_read(struct perf_source *source, void *buffer, size_t size_bytes);

/* The same, until @size_bytes are read or the end is reached. */
ssize_t perf_source_read_full(struct perf_source *source, void *buffer, size_t size_bytes);

/*
 * The same as a window instead of a copy, for a source that is mappable: the bytes from @offset on,
 * @size_bytes of them or those up to @end. @offset is not beyond what was read. Returns 1; 0 if all
 * has been read, or if the file cannot be mapped and is not mappable any more. Release with
 * file_window_unmap(), while @source is still where it is.
 */
int perf_source_map(struct perf_source *source, uint64_t offset, uint64_t end, size_t size_bytes,
		    struct file_window *ret);

/* Returns 0, or -EIO if the file was cut off or broken while it was read, reported. */
int perf_source_check(const struct perf_source *source);

/*
 * Reads exactly @size_bytes at @offset of a seekable source. Returns 0, -ENODATA where the file
 * ends before (not reported), or another negative errno after reporting it.
 */
int perf_source_read_at(const struct perf_source *source, uint64_t offset, void *buffer,
			size_t size_bytes);

/* True if @section_size bytes at @offset lie within a seekable source. */
bool perf_source_contains(const struct perf_source *source, uint64_t offset,
			  uint64_t section_size_bytes);

/*
 * Makes a pipe seekable: copies @head, which was read already, and all that follows to an unlinked
 * file in $TMPDIR or /tmp. Returns 0 or a negative errno, reported.
 */
int perf_source_spool(struct perf_source *source, const void *head, size_t head_bytes);

#endif
