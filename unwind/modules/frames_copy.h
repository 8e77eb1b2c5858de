/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copies of files that others than root can change, to unwind with. libelf maps a file, so its
 * owner could change what has been looked at before libdw uses it.
 */
#ifndef LEAKTOOLS_UNWIND_FRAMES_COPY_H
#define LEAKTOOLS_UNWIND_FRAMES_COPY_H

#include <stdint.h>

#define FRAMES_COPY_MAX_BYTES (64u << 20) /* most is call frame information */

/*
 * Copies the ELF file at @fd into memory, as far as unwinding needs it: headers, call frame
 * information, what tells where the stacks of Go's and of static programs end, and small sections.
 * Other sections have no contents in the copy. Returns a descriptor of the copy, in which nothing
 * has been looked at, and the bytes that it takes; or a negative errno: -E2BIG: it has more than
 * FRAMES_COPY_MAX_BYTES; -ENOEXEC: it is no file that is unwound, or is damaged.
 */
int frames_copy(int fd, uint64_t *ret_bytes);

#endif
