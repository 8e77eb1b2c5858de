/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/proc/process_maps.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

int process_maps_parse_line(char *line, struct process_mapping *ret)
{
	int path_at = 0;

	line[strcspn(line, "\n")] = '\0';
	*ret = (struct process_mapping){0};
	if (sscanf(line, "%16" SCNx64 "-%16" SCNx64 " %4s %16" SCNx64 " %8x:%8x %20" SCNu64 " %n",
		   &ret->start, &ret->end, ret->permissions, &ret->file_offset, &ret->major,
		   &ret->minor, &ret->inode, &path_at) != 7 ||
	    path_at == 0 || ret->start >= ret->end || strlen(ret->permissions) != 4)
		return -EINVAL;
	ret->path = line + path_at;
	return 0;
}

bool process_mapping_is_code(const struct process_mapping *mapping)
{
	return mapping->permissions[2] == 'x' && mapping->inode != 0 && mapping->path[0] == '/';
}
