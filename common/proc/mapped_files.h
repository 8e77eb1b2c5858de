/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Opens the files that a process has mapped as code.
 *
 * A path in /proc/PID/maps is the process's own: in another mount namespace, or after a package
 * upgrade, the same path names another file here. Each file is therefore opened through
 * /proc/PID/map_files, which is the mapping itself, and a path is used only if it leads to the same
 * device and inode. (The device in maps does not help: on btrfs and overlayfs it is not stat()'s.)
 */
#ifndef LEAKTOOLS_COMMON_MAPPED_FILES_H
#define LEAKTOOLS_COMMON_MAPPED_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

struct mapped_file {
	int fd;	       /* O_RDONLY; closed by mapped_files_deinit() unless it is -1 by then */
	char *path;    /* leads to the file from here, at present; do not reopen it */
	char *display; /* as the process sees it */
	struct stat stat;
};

struct mapped_files {
	struct mapped_file *files;
	size_t nr;
	size_t nr_unreadable; /* mapped as code, but could not be opened */
};

/*
 * Opens each file that @pid maps as code, once. Returns 0, or a negative errno after reporting it;
 * a file that cannot be opened is only counted. Release with mapped_files_deinit().
 */
int mapped_files_open(struct mapped_files *ret, pid_t pid);

/* As mapped_files_open(), but reports nothing. */
int mapped_files_try_open(struct mapped_files *ret, pid_t pid);

/* A place in code. */
struct mapped_place {
	uint64_t address; /* given */
	/* What is found: */
	size_t file; /* SIZE_MAX: it is in none */
	uint64_t offset;
};

/* The same for the files alone that have one of the @places, which it finds. */
int mapped_files_try_open_at(struct mapped_files *ret, pid_t pid, struct mapped_place *places,
			     size_t nr);
void mapped_files_deinit(struct mapped_files *files);

/*
 * True if tracefs takes @path in a definition: no white space, which it splits at, and no '#',
 * which starts a comment (trace_parse_run_command() in the kernel's kernel/trace/trace.c, 6.1).
 */
bool mapped_file_path_fits_tracefs(const char *path);

#endif
