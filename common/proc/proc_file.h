/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads the files of /proc/PID. What they say may be out of date at once: processes end, and their
 * ids are used again. Reports nothing.
 */
#ifndef LEAKTOOLS_COMMON_PROC_FILE_H
#define LEAKTOOLS_COMMON_PROC_FILE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/* More than /proc/PID/status has, also with the masks of many CPUs and memory nodes. */
#define PROC_FILE_STATUS_SIZE 8192

/* Room for the paths below. */
#define PROC_FILE_PATH_SIZE 96

/*
 * Writes the path /proc/PID/@name, for a call that takes no descriptor; "" names the directory.
 */
void proc_file_path(char ret[static PROC_FILE_PATH_SIZE], pid_t pid, const char *name);

/*
 * Writes the path in /proc/PID/map_files of the file mapped from @start to @end. It leads to that
 * very file, also if its name was removed or given to another file, or is in another mount
 * namespace.
 */
void proc_file_mapping_path(char ret[static PROC_FILE_PATH_SIZE], pid_t pid, uint64_t start,
			    uint64_t end);

/*
 * Reads /proc/PID/@name, at most @size - 1 bytes, and ends it with a NUL. @pid may also be a
 * thread. Safe in signal handlers. Returns 0, -ESRCH if there is no such process, or another
 * negative errno.
 */
int proc_file_read(pid_t pid, const char *name, char *text, size_t size);

/*
 * The same below @proc_fd, an open directory /proc/PID, which never becomes another process's.
 * Returns 0 or a negative errno; -ENOENT also if the process is gone.
 */
int proc_file_read_at(int proc_fd, const char *name, char *text, size_t size);

/*
 * Opens /proc/PID/@name, a file of any length or one that is not text. Returns NULL and sets errno
 * if it cannot. The caller closes it.
 */
FILE *proc_file_open(pid_t pid, const char *name);

/*
 * The value of the line of @text that begins with @key ("TracerPid:"): its first number, decimal.
 * Returns 0, or -ENODATA if there is none.
 */
int proc_file_number(const char *text, const char *key, uint64_t *ret);

/* The line's text behind @key, up to the end of @text; NULL: there is no such line. */
const char *proc_file_find(const char *text, const char *key);

#endif
