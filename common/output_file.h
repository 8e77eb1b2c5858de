/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Output files of tools that run as root for someone else. A new file belongs to the user who
 * called sudo (SUDO_UID, SUDO_GID), and is for nobody else to read. A link at its place is never
 * followed. An existing file is written to only if it is a regular file without other names that
 * belongs to us or to who called sudo, or null, zero, full or a terminal.
 */
#ifndef LEAKTOOLS_COMMON_OUTPUT_FILE_H
#define LEAKTOOLS_COMMON_OUTPUT_FILE_H

/*
 * Opens @path for reading and writing, truncated, O_CLOEXEC; a new file has mode 0600, an existing
 * one keeps its own. "/dev/stdout" is standard output. Returns a descriptor that the caller closes,
 * or a negative errno after reporting it.
 */
int output_file_open(const char *path);

/*
 * The same for a recording, which holds other processes' memory. What a file at @path holds stays
 * as it is: once there is something to replace it, output_file_begin() makes it @path.old, as perf
 * does, and lets @fd, that this returned, be a new file with mode 0600. Returns 0, or a negative
 * errno after reporting it.
 */
int output_file_open_kept(const char *path);
int output_file_begin(int fd, const char *path);

/*
 * Opens directory @path to put files into, and makes it if there is none, mode 0700 and belonging
 * to who called sudo. A link is not followed, and one that others own or can write to is refused:
 * they could change the files. Returns a descriptor that the caller closes, or a negative errno
 * after reporting it.
 */
int output_dir_open(const char *path);

/* output_file_open() of @name in the directory @dir_fd, which messages call @dir. */
int output_file_open_at(int dir_fd, const char *dir, const char *name);

#endif
