/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Jumps and calls from anywhere in an x86-64 file into given spans of its code. A compiler splits a
 * function's cold part off, which can jump back to any place in the function, and hand-written code
 * may have a second entry: code_flow.h sees neither.
 *
 * All bytes are looked at as if a jump with a 32-bit distance began there, whether or not an
 * instruction does; so none is overlooked, and one in some thousand millions is no jump. Distances
 * of 8 bits are not looked at: they do not reach beyond a function's neighbours.
 */
#ifndef LEAKTOOLS_PROBES_CODE_JUMPS_H
#define LEAKTOOLS_PROBES_CODE_JUMPS_H

#include "probes/elf/elf_image.h"

struct code_span {
	uint64_t first, last; /* offsets in the file, both included */
	/* Jumps from here do not count: from an offset to before another. */
	uint64_t own_begin, own_end;
	bool is_entered; /* the result */
};

/* Sets is_entered of those of @spans to which something in @image's code jumps. Returns 0 or a
 * negative errno. */
int code_jumps_find(const struct elf_image *image, struct code_span *spans, size_t nr);

/* The same for the @size_bytes of code at @code, which are at @offset of the file. */
void code_jumps_scan(const uint8_t *code, size_t size_bytes, uint64_t offset,
		     struct code_span *spans, size_t nr);

#endif
