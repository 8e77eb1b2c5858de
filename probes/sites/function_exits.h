/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where the calls of an x86-64 function end: its `ret` instructions. Probes there see a return
 * without a return probe, which would replace the return address on the stack. An exception, a
 * forced unwinding or a coroutine that passes the function would find that out.
 *
 * The code is followed from the function's entry and from the places where exceptions come back
 * into it, wherever it jumps in its file: cold parts, other functions that it ends in (tail calls).
 * A breakpoint within an instruction would corrupt the program, so an exit counts only if it is an
 * instruction that the flow of control leads to. A function whose jumps are not all understood has
 * none: returns would be missed.
 */
#ifndef LEAKTOOLS_PROBES_FUNCTION_EXITS_H
#define LEAKTOOLS_PROBES_FUNCTION_EXITS_H

#include "probes/elf/elf_image.h"
#include "probes/elf/frame_table.h"

#define FUNCTION_MAX_EXITS 64

struct function_exits {
	uint64_t offsets[FUNCTION_MAX_EXITS]; /* in the file, ascending */
	size_t nr;
	/* Of a function that is not understood: why, for the user, and where in the file. */
	const char *why;
	uint64_t where;
};

/*
 * Finds where calls of the function at @function end; @frames is @image's. Returns 0, -ENOTSUP with
 * the reason in @ret, or another negative errno.
 */
int function_exits_find(const struct elf_image *image, const struct frame_table *frames,
			const struct elf_function *function, struct function_exits *ret);

#endif
