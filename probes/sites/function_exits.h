/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finds the exits of an x86-64 function: its `ret` instructions. Probes there see a return without
 * a return probe, which would replace the return address on the stack. An exception, a forced
 * unwinding or a coroutine that passes the function would come across that address.
 *
 * The code is followed from the function's entry and from its landing pads, wherever it jumps in
 * its file: to cold parts, and to other functions (tail calls). A breakpoint inside an instruction
 * would corrupt the program, so only instructions that control flow reaches count. A function whose
 * jumps are not all understood has no exits, since returns would be missed.
 */
#ifndef LEAKTOOLS_PROBES_FUNCTION_EXITS_H
#define LEAKTOOLS_PROBES_FUNCTION_EXITS_H

#include "probes/elf/elf_image.h"
#include "probes/elf/frame_table.h"

#define FUNCTION_MAX_EXITS 64

struct function_exits {
	uint64_t offsets[FUNCTION_MAX_EXITS]; /* in the file, ascending */
	size_t nr;
	/* If the function is not understood: why, for the user, and where in the file. */
	const char *why;
	uint64_t where;
};

/*
 * Finds the exits of @function; @frames is @image's. Returns 0, -ENOTSUP with the reason in @ret,
 * or another negative errno.
 */
int function_exits_find(const struct elf_image *image, const struct frame_table *frames,
			const struct elf_function *function, struct function_exits *ret);

#endif
