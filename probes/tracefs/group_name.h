/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The names of tracefs groups, as probe_set.h defines them: whose the probes are, and which file
 * they watch.
 */
#ifndef LEAKTOOLS_PROBES_GROUP_NAME_H
#define LEAKTOOLS_PROBES_GROUP_NAME_H

#include "probes/plan/probe_set.h"

enum group_owner {
	GROUP_OF_LEAKPROBE,
	GROUP_OF_LEAKREC,
};

struct group_name {
	enum group_owner owner;
	pid_t pid;		   /* GROUP_OF_LEAKREC: the recorder's process... */
	uint64_t start_time_ticks; /* ...and its start (field 22 of /proc/PID/stat) */
	char file[PROBE_NAME_MAX]; /* [A-Za-z0-9_]+ */
	uint32_t inode_hash;	   /* over device and inode */
	uint32_t build_hash;	   /* of the build-id */
};

uint32_t group_name_inode_hash(dev_t device, ino_t inode);

/* Sets @name->file from the base name of @path. */
void group_name_set_file(struct group_name *name, const char *path);

/* Writes the name; the file's part is cut so that it fits. */
void group_name_format(const struct group_name *name, char buffer[static PROBE_NAME_MAX]);

/* Returns 0, or -EINVAL if @text is no group of leakprobe or leakrec. */
int group_name_parse(const char *text, struct group_name *ret);

#endif
