/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The files of a recording in segments (docs/segments.md). leakrec may be writing the last one, and
 * removing the first ones: all are opened before the first one is read.
 */
#ifndef LEAKTOOLS_PARSER_SEGMENT_FILES_H
#define LEAKTOOLS_PARSER_SEGMENT_FILES_H

#include "common/schema/segment_name.h"

#include <stddef.h>

/* leakrec keeps a dozen. The newest ones are read. */
#define SEGMENT_FILES_MAX 256

struct segment_file {
	struct segment_name name;
	int fd;
	char *path; /* for messages */
};

struct segment_files {
	struct segment_file *list;
	size_t nr;
};

/*
 * Opens the segments of the newest recording in @dir_fd, which messages call @dir, in order. A last
 * one that has no records yet is left out. Returns 0 or a negative errno, reported. Release with
 * segment_files_close() in either case.
 */
int segment_files_open(int dir_fd, const char *dir, struct segment_files *ret);
void segment_files_close(struct segment_files *files);

#endif
