/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A named frame of a stack, and how it is printed. */
#ifndef LEAKTOOLS_UNWIND_STACK_FRAME_H
#define LEAKTOOLS_UNWIND_STACK_FRAME_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define STACK_MAX_INLINED 64 /* functions in one frame; deeper ones are left out */

/*
 * Marks in the place of a stack's last address: the stack was not unwound to its outermost frame,
 * because the dump was too short, because the next frame could not be found, or because the frames
 * further out are on another stack, which the dump does not hold: a signal's handler or cgo has
 * switched stacks. The last one is no failure. A mark is a frame like others.
 */
#define STACK_TRUNCATED	 0ULL
#define STACK_INCOMPLETE 1ULL
#define STACK_ELSEWHERE	 2ULL
#define STACK_LAST_MARK	 STACK_ELSEWHERE

/* Strings live as long as the store. */
struct stack_frame {
	uint64_t address;	  /* in the process */
	uint64_t module_offset;	  /* ELF virtual address in @module */
	const char *module;	  /* path; NULL: no known file is mapped there */
	const char *function;	  /* demangled; NULL: no symbol (print module+offset) */
	uint64_t function_offset; /* from the symbol; inlined: from the start of its code */
	bool inlined;		  /* into the function of the next frame */
	bool is_generated;	  /* by the process, which has named it (jit_names.h) */
	const char *file;	  /* source; NULL: not known */
	int line;
};

/*
 * Prints one frame, inlined or not, escaped (diag_print_escaped()) and without a newline, in
 * columns two spaces apart:
 *
 *   function+0x1a  file.c:12  (/path/of/module)   the second column is missing where not known
 *   function+0x1a  file.c:12  (/path/of/module)  inlined
 *   module+0x1234  (/path/of/module)              no symbol: the ELF address, as addr2line takes it
 *   0x7f0012345678  (unknown)                     no module
 *   (truncated: ...), (incomplete: ...), (elsewhere: ...)  a mark
 *
 * Returns 0, or -EIO if the stream failed.
 */
int stack_frame_print(const struct stack_frame *frame, FILE *out);

#endif
