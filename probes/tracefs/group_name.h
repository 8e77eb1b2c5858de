/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names of tracefs groups. The probes on one file form a group, whose name says whose they are and
 * which file they watch; so no state is kept elsewhere:
 *
 *   leakprobe_<file>_<i>_<b>                  made by leakprobe; stay until `leakprobe del`
 *   leakrec<pid>_<starttime>_<file>_<i>_<b>   made by one leakrec for itself; once that process is
 *                                             gone, the next leakrec or leakprobe removes them
 *   leakrec<pid>n<n>_<starttime>_...          the same, by a leakrec in a container
 *
 * <file> is the file's base name, cut to fit, with '_' for all but [A-Za-z0-9]; <i> is eight hex
 * digits over device and inode; <b> is the first eight digits of the build-id, or of a hash of the
 * code of a file without one; <starttime> is field 22 of /proc/PID/stat in hex; <n> is the inode of
 * the PID namespace that <pid> belongs to, in hex.
 */
#ifndef LEAKTOOLS_PROBES_GROUP_NAME_H
#define LEAKTOOLS_PROBES_GROUP_NAME_H

#include <stdint.h>
#include <sys/types.h>

#define PROBE_NAME_MAX 64 /* MAX_EVENT_NAME_LEN in the kernel's kernel/trace/trace.h (6.1) */

enum group_owner {
	GROUP_OF_LEAKPROBE,
	GROUP_OF_LEAKREC,
};

struct group_name {
	enum group_owner owner;
	pid_t pid;		   /* GROUP_OF_LEAKREC: the recorder's process... */
	uint32_t pid_namespace;	   /* ...0: its id is of the initial PID namespace... */
	uint64_t start_time_ticks; /* ...and its start (field 22 of /proc/PID/stat) */
	char file[PROBE_NAME_MAX]; /* [A-Za-z0-9_]+ */
	uint32_t inode_hash;	   /* over device and inode */
	uint32_t build_hash;	   /* see elf_image_build_hash() */
};

uint32_t group_name_inode_hash(dev_t device, ino_t inode);

/* Sets @name->file from the base name of @path. */
void group_name_set_file(struct group_name *name, const char *path);

/* Writes the name; cuts the file's part so that it fits. */
void group_name_format(const struct group_name *name, char buffer[static PROBE_NAME_MAX]);

/* Returns 0, or -EINVAL if @text is not a group of leakprobe or leakrec. */
int group_name_parse(const char *text, struct group_name *ret);

#endif
