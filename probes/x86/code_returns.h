/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tells whether a call of x86-64 code can return. The bytes after a call of a function that never
 * returns are the next block of code, to which the call does not lead.
 *
 * The code is followed from its first byte, wherever it jumps in its segment, with the constants
 * that the caller passes in registers: a function may end the process depending on one of them. The
 * answer "never" is proved; code that is not understood, is too long, or leaves the file (a call
 * through the PLT) may return.
 */
#ifndef LEAKTOOLS_PROBES_CODE_RETURNS_H
#define LEAKTOOLS_PROBES_CODE_RETURNS_H

#include "probes/x86/code_segment.h"
#include "probes/x86/register_state.h"

#define CODE_RETURNS_MAX_DEPTH	 8
#define CODE_RETURNS_MAX_ANSWERS 64
#define CODE_RETURNS_NR_ARGS	 6

/* One question: code, and what is known of the arguments. */
struct code_call {
	uint64_t offset;
	struct value args[CODE_RETURNS_NR_ARGS];
};

struct code_returns {
	struct code_segment segment;
	unsigned int nr_steps_left;
	int error; /* of reading or memory; answers are then "may return" */

	struct code_call asked[CODE_RETURNS_MAX_DEPTH]; /* questions that are being answered */
	int depth;
	struct {
		struct code_call call;
		bool may_return;
	} answers[CODE_RETURNS_MAX_ANSWERS];
	size_t nr_answers;
};

/*
 * Prepares for questions about the segment of @image, which must stay, that holds @offset. Nothing
 * has to be released.
 */
void code_returns_init(struct code_returns *ret, const struct elf_image *image, uint64_t offset);

/* True if code that is called at @offset of the file, with @registers, may return. */
bool code_may_return(struct code_returns *returns, uint64_t offset,
		     const struct register_state *registers);

#endif
