/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Jumps and calls from anywhere in an x86-64 file into given spans of its code. Compilers move the
 * cold part of a function elsewhere, and that can jump back to any place in the function;
 * hand-written code may have a second entry. code_flow.h sees neither.
 *
 * Every byte is treated as the possible start of a jump with a 32-bit distance. So no jump is
 * overlooked. A byte that begins no jump looks like one into a span about once in some thousand
 * million. If the piece of code around it, which .eh_frame describes, is nothing but instructions
 * from its beginning to its end, these show whether it begins one. Jumps with 8-bit distances are
 * ignored: they do not reach beyond the neighbouring functions.
 */
#ifndef LEAKTOOLS_PROBES_CODE_JUMPS_H
#define LEAKTOOLS_PROBES_CODE_JUMPS_H

#include "probes/elf/elf_image.h"

struct code_span {
	uint64_t first, last; /* offsets in the file, both included */
	/* Jumps from here do not count: from own_begin to before own_end. */
	uint64_t own_begin, own_end;
	bool is_entered; /* the result */
};

/*
 * Sets is_entered of those spans that code of @image jumps or calls into. Returns 0 or a negative
 * errno.
 */
int code_jumps_find(const struct elf_image *image, struct code_span *spans, size_t nr);

/* True if @offset of the file is the last byte of a jump's opcode. */
typedef bool code_jump_check(void *context, uint64_t offset);

/*
 * The same for @size_bytes of code, which are at @offset of the file. What looks like a jump counts
 * if @is_real is NULL or says that it is one.
 */
void code_jumps_scan(const uint8_t *code, size_t size_bytes, uint64_t offset,
		     struct code_span *spans, size_t nr, code_jump_check *is_real, void *context);

#endif
