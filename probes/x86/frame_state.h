/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What is known at one instruction of an x86-64 function, on every path there: of the registers
 * (register_state.h), and of the stack frame.
 *
 * A function is refused if its frame cannot be followed: it takes addresses of its frame, or moves
 * the stack pointer by a variable amount. Stores through unknown pointers are assumed not to hit
 * the frame, as unwinders assume.
 */
#ifndef LEAKTOOLS_PROBES_FRAME_STATE_H
#define LEAKTOOLS_PROBES_FRAME_STATE_H

#include "probes/x86/register_state.h"

#define FRAME_SLOT_BYTES 8
#define FRAME_NR_SLOTS	 32 /* what is stored below is not known */

struct frame_state {
	struct register_state registers;
	/* The frame in units of 8 bytes, from below the return address downwards. */
	struct value slots[FRAME_NR_SLOTS];
};

/* The state at the first instruction of a function. */
struct frame_state frame_state_entry(void);

/* The stack pointer, relative to the entry: 0 or negative. */
int32_t frame_state_stack_pointer(const struct frame_state *state);

/*
 * Applies @instruction, if control continues after it; a call includes its return. Returns false if
 * the frame cannot be followed.
 */
bool frame_state_step(struct frame_state *state, const struct instruction *instruction);

/* True if the stack pointer and the preserved registers are the caller's. */
bool frame_state_is_callers(const struct frame_state *state);

/* Keeps in @state what also holds in @other. Returns false if the stack pointers differ. */
bool frame_state_join(struct frame_state *state, const struct frame_state *other,
		      bool *ret_is_changed);

#endif
