/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files below a directory that stands for "/", for paths that others have made up. */
#ifndef LEAKTOOLS_COMMON_ROOT_FILE_H
#define LEAKTOOLS_COMMON_ROOT_FILE_H

#include <sys/stat.h>

/*
 * Opens the regular file @path below @root for reading. Links and ".." on the way never lead out of
 * @root. Nothing but a regular file is opened. Returns a descriptor that the caller closes, or a
 * negative errno: -ENOSYS before Linux 5.6, where a path can not be kept in.
 */
int root_file_open(const char *root, const char *path, struct stat *ret_stat);

#endif
