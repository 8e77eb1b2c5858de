/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What is known of the general registers at one instruction of x86-64 code, on every path there:
 * which hold a constant, or still what they held at an earlier instruction. Instructions that are
 * not understood make the registers that they write unknown.
 *
 * Registers are numbered as instructions encode them: ax, cx, dx, bx, sp, bp, si, di, r8 to r15.
 */
#ifndef LEAKTOOLS_PROBES_REGISTER_STATE_H
#define LEAKTOOLS_PROBES_REGISTER_STATE_H

#include "probes/x86/code_flow.h"

enum register_number {
	REGISTER_AX,
	REGISTER_CX,
	REGISTER_DX,
	REGISTER_BX,
	REGISTER_SP,
	REGISTER_BP,
	REGISTER_SI,
	REGISTER_DI,
	REGISTER_R12 = 12,
	REGISTER_R13,
	REGISTER_R14,
	REGISTER_R15,
	NR_REGISTERS,
};

enum value_kind {
	VALUE_UNKNOWN,
	VALUE_CONSTANT, /* of 64 bits, the upper 32 of them 0 */
	VALUE_ENTRY,	/* the content of the register of that number at the function's entry */
	VALUE_TOKEN,	/* its content at the instruction where a path begins */
	VALUE_STACK,	/* an address: the stack pointer at the function's entry plus the number */
};

/* Equal values compare equal; an unknown value is all zero. */
struct value {
	uint32_t kind;	 /* enum value_kind */
	uint32_t number; /* meaning by kind; 0 if unknown */
};

#define NO_REGISTER (-1)

struct register_state {
	struct value values[NR_REGISTERS];
	uint16_t zero_tokens; /* a bit for each VALUE_TOKEN that is 0 on this path */
	int8_t tested;	      /* whether this register is 0 is in the zero flag; or NO_REGISTER */
	uint8_t tested_bits;  /* how many of its lower bits: 32 or 64 */
};

/* Nothing is known. */
struct register_state register_state_unknown(void);

static inline struct value value_make(enum value_kind kind, uint32_t number)
{
	return (struct value){.kind = kind, .number = number};
}

static inline bool value_equals(struct value a, struct value b)
{
	return a.kind == b.kind && a.number == b.number;
}

static inline bool value_is(struct value a, enum value_kind kind, uint32_t number)
{
	return a.kind == kind && a.number == number;
}

/* The number of the general register that @reg is, or is part of; NO_REGISTER for others. */
int register_number(ZydisRegister reg);

/*
 * Applies @instruction to the registers, the stack pointer included, if control continues after it.
 * Of a call it does not apply the callee; register_state_call() does.
 */
void register_state_step(struct register_state *state, const struct instruction *instruction);

/* Forgets what functions may change (System V psABI for x86-64, 3.2.1). */
void register_state_call(struct register_state *state);

/*
 * Adds what is known if @instruction, before which @state holds, jumps, or goes on. Returns false
 * if it cannot do that.
 */
bool register_state_branch(struct register_state *state, const struct instruction *instruction,
			   bool is_taken);

/* The tokens that @value equals, as bits. */
uint16_t register_state_tokens(const struct register_state *state, struct value value);

/* True if @value is certainly 0. */
bool register_state_is_zero(const struct register_state *state, struct value value);

/* Joins a value that is @a where @a_state holds, and @b where @b_state does. */
struct value register_state_join_value(const struct register_state *a_state, struct value a,
				       const struct register_state *b_state, struct value b);

/* Keeps in @state what also holds in @other. Returns false if nothing changed. */
bool register_state_join(struct register_state *state, const struct register_state *other);

#endif
