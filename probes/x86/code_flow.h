/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The instructions of one x86-64 function: which of its bytes begin one, and where its jumps go.
 *
 * Only what control flow reaches from the function's entry counts, so data and padding between
 * instructions are never taken for code. A call is taken to return: what follows one that never
 * does is decoded, too. The bytes are hostile: every offset is checked.
 */
#ifndef LEAKTOOLS_PROBES_CODE_FLOW_H
#define LEAKTOOLS_PROBES_CODE_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <Zydis/Zydis.h>

#define CODE_FLOW_MAX_BYTES 65536

struct instruction {
	ZydisDecodedInstruction info;
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT]; /* hidden operands included */
};

/* The arrays are indexed by offset in the function. */
struct code_flow {
	const uint8_t *code; /* borrowed */
	size_t size_bytes;
	bool *is_start;	  /* an instruction begins here that the entry reaches */
	bool *is_target;  /* a direct jump or call goes here */
	bool is_complete; /* false: there may be jumps that is_target lacks */
};

/*
 * Follows the code of the function, @size_bytes at @code, which must stay. Returns 0, -E2BIG (more
 * than CODE_FLOW_MAX_BYTES) or -ENOMEM. Release with code_flow_deinit().
 */
int code_flow_init(struct code_flow *ret, const uint8_t *code, size_t size_bytes);
void code_flow_deinit(struct code_flow *flow);

/* Decodes the instruction at @code. Returns false if it is invalid or incomplete. */
bool instruction_decode(struct instruction *ret, const uint8_t *code, size_t size_bytes);

/*
 * Finds the target of the direct jump or call at @offset, which may be anywhere. Returns false for
 * other instructions.
 */
bool instruction_target(const struct instruction *instruction, uint64_t offset,
			uint64_t *ret_target);

/*
 * True for a jump, call or return with an operand-size prefix. Intel's processors ignore the
 * prefix; AMD's take a shorter offset, and truncate the target to 16 bits.
 */
bool instruction_is_ambiguous(const struct instruction *instruction);

/* True for hlt and ud2: control neither continues after @instruction nor jumps. */
bool instruction_traps(const struct instruction *instruction);

/* Decodes at @offset. Returns false if no instruction begins there that the entry reaches. */
bool code_flow_decode(const struct code_flow *flow, uint64_t offset, struct instruction *ret);

/* True if a known jump or call goes to an offset in @first..@last, both included. */
bool code_flow_has_target(const struct code_flow *flow, uint64_t first, uint64_t last);

#endif
