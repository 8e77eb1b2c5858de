/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files in memory, also where vm.memfd_noexec is 2. */
#ifndef LEAKTOOLS_COMMON_MEMORY_FILE_H
#define LEAKTOOLS_COMMON_MEMORY_FILE_H

/* Makes an empty file. Returns a descriptor, which the caller closes, or a negative errno. */
int memory_file_create(const char *name);

#endif
