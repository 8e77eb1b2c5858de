/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The files that a process has mapped as code, from /proc/PID/maps, opened as the process sees
 * them.
 *
 * The path in maps is the process's own: in another mount namespace, or after a package upgrade,
 * the same path names another file here. Each file is therefore opened through
 * /proc/PID/map_files, which is the mapping itself, and a path is used only if it leads to the same
 * device and inode. (The device in maps is no help: on btrfs and overlayfs it is not stat()'s.)
 */
#ifndef LEAKTOOLS_COMMON_PROCESS_MAPS_H
#define LEAKTOOLS_COMMON_PROCESS_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

/* A line of /proc/PID/maps. */
struct process_mapping {
	uint64_t start, end;
	bool is_code; /* executable and backed by a file */
	char *path;   /* within the line that was parsed */
};

struct mapped_file {
	int fd;	       /* O_RDONLY; closed by mapped_files_deinit() unless taken */
	char *path;    /* leads to the file from here, for now; never reopened to probe it */
	char *display; /* as the process sees it */
	struct stat stat;
};

struct mapped_files {
	struct mapped_file *files;
	size_t nr;
	size_t nr_unreadable; /* mapped as code, but could not be opened */
};

/* Parses @line, cutting its newline off. Returns 0, or -EINVAL. */
int process_maps_parse_line(char *line, struct process_mapping *ret);

/*
 * Opens each file that @pid maps as code, once. Returns 0, or a negative errno after reporting it;
 * a file that cannot be opened is only counted. Release with mapped_files_deinit().
 */
int mapped_files_open(struct mapped_files *ret, pid_t pid);

/* The same; reports nothing. */
int mapped_files_try_open(struct mapped_files *ret, pid_t pid);
void mapped_files_deinit(struct mapped_files *files);

/*
 * True if tracefs takes @path in a definition: no white space, which it splits at, and no '#',
 * which starts a comment (trace_parse_run_command() in the kernel's kernel/trace/trace.c, 6.1).
 */
bool mapped_file_path_fits_tracefs(const char *path);

#endif
