/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Output files of tools that run as root for someone else. The file belongs to the user who called
 * sudo (SUDO_UID, SUDO_GID), a link at its place is never followed, and an existing file is
 * replaced only if it is a regular file.
 */
#ifndef LEAKTOOLS_COMMON_OUTPUT_FILE_H
#define LEAKTOOLS_COMMON_OUTPUT_FILE_H

/*
 * Opens @path for reading and writing, truncated, mode 0600, O_CLOEXEC. Returns a descriptor that
 * the caller closes, or a negative errno after reporting it.
 */
int output_file_open(const char *path);

/*
 * The same, but what a file at @path holds stays, for the caller to truncate: once it is known that
 * there is something to replace it.
 */
int output_file_open_kept(const char *path);

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
