/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The lines of /proc/PID/maps. */
#ifndef LEAKTOOLS_COMMON_PROCESS_MAPS_H
#define LEAKTOOLS_COMMON_PROCESS_MAPS_H

#include <stdbool.h>
#include <stdint.h>

struct process_mapping {
	uint64_t start, end;
	char permissions[5]; /* "r-xp" */
	uint64_t file_offset;
	unsigned int major, minor; /* of the file's device */
	uint64_t inode;		   /* 0: no file */
	char *path; /* "" if it has none, "[heap]"; within the line that was parsed */
};

/* Parses @line, cutting its newline off. Returns 0, or -EINVAL. */
int process_maps_parse_line(char *line, struct process_mapping *ret);

/* True if the mapping is executable and backed by a file. */
bool process_mapping_is_code(const struct process_mapping *mapping);

#endif
