/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The names of a recording's segments in its directory (docs/segments.md): 000001.00000017.data. */
#ifndef LEAKTOOLS_SCHEMA_SEGMENT_NAME_H
#define LEAKTOOLS_SCHEMA_SEGMENT_NAME_H

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>

#define SEGMENT_NAME_BYTES 32
#define SEGMENT_NAME_MAX   (UINT32_MAX - 1) /* of both numbers */

struct segment_name {
	uint32_t recording, number; /* from 1 on */
};

void segment_name_format(struct segment_name name, char ret[SEGMENT_NAME_BYTES]);

/* Returns 0, or -EINVAL if @text is no such name. */
int segment_name_parse(const char *text, struct segment_name *ret);

/* For qsort(): by recording, then by number. */
int segment_name_compare(const void *a, const void *b);

/*
 * Lists the segments in the directory @dir_fd, which stays open, from its beginning. Close *@ret
 * with closedir(). No file is opened: leakparse does this behind a filter. Both descriptors have
 * one position. Returns 0 or a negative errno.
 */
int segment_names_open(int dir_fd, DIR **ret);

/* The next one, in no order. Returns false at the end. */
bool segment_names_next(DIR *entries, struct segment_name *ret);

#endif
