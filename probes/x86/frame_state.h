/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What is known at one place of an x86-64 function, whatever the path there: of the registers
 * (register_state.h), and of the function's stack frame, whose size then is known.
 *
 * A function whose frame cannot be followed is refused: one that takes addresses of its frame, or
 * moves the stack pointer by what is not in the code. Stores through pointers of which nothing is
 * known are taken not to hit the frame, as whoever unwinds a stack takes them.
 */
#ifndef LEAKTOOLS_PROBES_FRAME_STATE_H
#define LEAKTOOLS_PROBES_FRAME_STATE_H

#include "probes/x86/register_state.h"

#define FRAME_SLOT_BYTES 8
#define FRAME_NR_SLOTS	 32 /* what is stored farther down is not known */

struct frame_state {
	struct register_state registers;
	/* The frame by 8 bytes, from the return address downwards, which is not among them. */
	struct value slots[FRAME_NR_SLOTS];
};

/* At a function's first instruction. */
struct frame_state frame_state_entry(void);

/* Where the stack pointer is, from where it was at the entry: 0 or negative. */
int32_t frame_state_stack_pointer(const struct frame_state *state);

/* What @instruction does if it goes on; of a call, when that has returned. Returns false if the
 * frame cannot be followed. */
bool frame_state_step(struct frame_state *state, const struct instruction *instruction);

/* True if the stack pointer and the registers that a function gives back are the caller's. */
bool frame_state_is_callers(const struct frame_state *state);

/* Leaves in @state what holds in @other, too. Returns false if the stack pointers differ. */
bool frame_state_join(struct frame_state *state, const struct frame_state *other,
		      bool *ret_is_changed);

#endif
