/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Opens output files safely in tools that run as root for another user. A new file belongs to the
 * user who called sudo (SUDO_UID, SUDO_GID) and only that user can read it. Symbolic links are not
 * followed. An existing file is written to only if it is a regular file with one name and belongs
 * to this process's user or the sudo caller, or if it is /dev/null, zero, full or a terminal.
 */
#ifndef LEAKTOOLS_COMMON_OUTPUT_FILE_H
#define LEAKTOOLS_COMMON_OUTPUT_FILE_H

#include <stddef.h>
#include <stdint.h>

/*
 * Opens @path for reading and writing, truncates it, sets O_CLOEXEC. A new file has mode 0600, an
 * existing one keeps its mode. "/dev/stdout" is standard output. Returns a descriptor that the
 * caller closes, or a negative errno after reporting it.
 */
int output_file_open(const char *path);

/* Opens @path in the same way as standard output. Returns 0, or a negative errno, reported. */
int output_file_redirect(const char *path);

/*
 * The same for a recording, which holds other processes' memory. An existing recording at @path is
 * kept until there is something to replace it: output_file_begin() then renames it to @path.old, as
 * perf does, and makes @fd, which output_file_open_kept() returned, a new file with mode 0600.
 * Returns 0, or a negative errno after reporting it; the first one also if the disk has no room
 * (output_check_room()).
 */
int output_file_open_kept(const char *path);
int output_file_begin(int fd, const char *path);

/*
 * Removes what either has made at @path if nothing was written to it: a recording that failed
 * leaves no empty file. Does nothing if another file is there by now.
 */
void output_file_drop_empty(int fd, const char *path);

/*
 * Returns -ENOSPC, not reported, if the disk of the file or directory @fd has no room for a
 * recording's head, so that this is known before a probe is placed; else 0. @freed_bytes: what
 * files have there that the recording is about to remove. Quotas are not seen.
 */
int output_check_room(int fd, uint64_t freed_bytes);

/*
 * Opens the directory @path to put files into. A missing one is made, with mode 0700, and belongs
 * to the sudo caller. A link is not followed. A directory that other users own or can write to is
 * refused: they could change the files. Returns a descriptor that the caller closes, or a negative
 * errno after reporting it.
 */
int output_dir_open(const char *path);

/* output_file_open() of @name in the directory @dir_fd, which messages call @dir. */
int output_file_open_at(int dir_fd, const char *dir, const char *name);

/*
 * Writes all @size bytes to @fd, however little a single write() takes. Returns 0 or a negative
 * errno, not reported.
 */
int output_write_all(int fd, const void *bytes, size_t size);

#endif
