/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Opens files below a directory that stands for "/". The paths may be hostile. */
#ifndef LEAKTOOLS_COMMON_ROOT_FILE_H
#define LEAKTOOLS_COMMON_ROOT_FILE_H

#include <sys/stat.h>

/*
 * Opens the regular file @path below @root for reading. Links and ".." in @path never lead out of
 * @root. Other kinds of files are not opened. Returns a descriptor that the caller closes, or a
 * negative errno: -ENOSYS before Linux 5.6, which has no openat2().
 */
int root_file_open(const char *root, const char *path, struct stat *ret_stat);

#endif
