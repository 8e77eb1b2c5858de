/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An input that the user named, opened by this process or by its broker. */
#ifndef LEAKTOOLS_COMMON_NAMED_FILE_H
#define LEAKTOOLS_COMMON_NAMED_FILE_H

/*
 * Opens @path for reading; links are followed, because the user named it. Returns a descriptor that
 * the caller closes, or a negative errno, not reported.
 */
int named_file_open(const char *path);

#endif
