/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The bytes of a recording: a regular file, read from its beginning regardless of its offset; a
 * pipe; or the contents of the recording's compressed records, which end with each record and
 * continue with the next. A pipe that carries a file with a table of contents is copied to a
 * temporary file first.
 *
 * A file that no other user can change is mapped (file_window.h). Others are read.
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
	volatile sig_atomic_t is_cut;		/* a window showed zeros instead of the file */
	uint64_t size_bytes;			/* seekable only */
	uint64_t position;			/* of the next sequential read */
	struct perf_decompressor *decompressor; /* replaces fd; NULL: none */
};

/* Opens a recording. Returns a descriptor that the caller closes, or a negative errno. */
int perf_source_open(const char *path);

/*
 * The same for file @name in the directory @dir_fd, of which @path is the whole path. Follows no
 * link, and does not wait for the writer of a pipe.
 */
int perf_source_open_in(int dir_fd, const char *name, const char *path);

/* Reports nothing and cannot fail. @fd and @name stay the caller's. Free with _deinit(). */
void perf_source_init(struct perf_source *source, int fd, const char *name);
/* As perf_source_init(), for the output of @decompressor, which stays the caller's. */
void perf_source_init_compressed(struct perf_source *source,
				 struct perf_decompressor *decompressor);
void perf_source_deinit(struct perf_source *source);

/*
 * Reads the next bytes, at least one. Returns how many, 0 at the end, or a negative errno
 * (reported).
 */
ssize_t perf_source_read(struct perf_source *source, void *buffer, size_t size_bytes);

/* As perf_source_read(), but reads @size_bytes unless the source ends before. */
ssize_t perf_source_read_full(struct perf_source *source, void *buffer, size_t size_bytes);

/*
 * Maps instead of reading, for a mappable source: @size_bytes from @offset on, or up to @end.
 * @offset must not be beyond the bytes read so far. Returns 1; or 0 at the end, or if the file
 * cannot be mapped (the source is not mappable any more). Release with file_window_unmap(), before
 * @source moves.
 */
int perf_source_map(struct perf_source *source, uint64_t offset, uint64_t end, size_t size_bytes,
		    struct file_window *ret);

/* Returns 0, or -EIO, reported, if the file was truncated or could not be read in full. */
int perf_source_check(const struct perf_source *source);

/*
 * Reads exactly @size_bytes at @offset of a seekable source. Returns 0, -ENODATA if the file ends
 * before (not reported), or another negative errno (reported).
 */
int perf_source_read_at(const struct perf_source *source, uint64_t offset, void *buffer,
			size_t size_bytes);

/* True if @section_size bytes at @offset lie within a seekable source. */
bool perf_source_contains(const struct perf_source *source, uint64_t offset,
			  uint64_t section_size_bytes);

/*
 * Makes a pipe seekable: copies @head, which was read already, and the rest to an unlinked file in
 * $TMPDIR or /tmp. Returns 0 or a negative errno (reported).
 */
int perf_source_spool(struct perf_source *source, const void *head, size_t head_bytes);

/* Opens such a file. Returns a descriptor that the caller closes, or a negative errno. */
int perf_source_open_temporary(void);

#endif
