/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The other tools, which are installed beside this one. */
#ifndef LEAKTOOLS_COMMON_SIBLING_PROGRAM_H
#define LEAKTOOLS_COMMON_SIBLING_PROGRAM_H

/*
 * Opens the program @name that is in the directory of this one, for fexecve(). Returns a descriptor
 * (O_PATH) or a negative errno.
 */
int sibling_program_open(const char *name);

#endif
