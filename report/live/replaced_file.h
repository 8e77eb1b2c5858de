/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A small file that is written again and again, and that others may read at any time. They see
 * either the contents before or those after: a new file is written beside it and takes its name.
 */
#ifndef LEAKTOOLS_REPORT_REPLACED_FILE_H
#define LEAKTOOLS_REPORT_REPLACED_FILE_H

#include <stddef.h>
#include <sys/types.h>

/*
 * Gives the file @name in the directory @dir_fd the contents @bytes and the mode @mode. The file
 * belongs to this process's user. Links are not followed: one that has that name is replaced, and
 * anything else that is not a regular file is refused (EEXIST). What is there stays if this fails.
 * Returns 0 or a negative errno, not reported.
 */
int replaced_file_write(int dir_fd, const char *name, mode_t mode, const char *bytes, size_t size);

#endif
