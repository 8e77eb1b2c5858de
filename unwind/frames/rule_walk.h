/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A walk up a stack dump by rules (cfi_rules.h), frame by frame. rule_unwinder.c finds the rule of
 * each frame; rule_walk.c goes from a frame to its caller by that rule.
 *
 * Positions in the dump are byte offsets from its start.
 */
#ifndef LEAKTOOLS_UNWIND_RULE_WALK_H
#define LEAKTOOLS_UNWIND_RULE_WALK_H

#include "unwind/frames/cfi_rules.h"
#include "unwind/frames/stack_dump.h"
#include "unwind/modules/address_space.h"

#include <string.h>

/* The result of a step, or of the walk. */
enum step {
	STEP_DONE,	  /* there is a caller */
	STEP_OUTERMOST,	  /* there is none */
	STEP_TRUNCATED,	  /* there may be one, above the end of the dump */
	STEP_LOST,	  /* it cannot be found */
	STEP_ELSEWHERE,	  /* it is on another stack, which the dump does not hold */
	STEP_TOO_COMPLEX, /* no rule can handle it */
	STEP_NO_MEMORY,
};

/*
 * A frame: its known registers, and how its address is to be looked up. Few of the registers that a
 * function saved are ever needed, so they stay in the dump until then. The stack pointer is read at
 * once.
 */
struct frame {
	uint64_t registers[CFI_NR_REGISTERS];
	size_t saved_at[CFI_NR_REGISTERS]; /* offsets in the dump */
	uint32_t known;			   /* bits of registers */
	uint32_t in_dump; /* bits of registers to be read at @saved_at, not from @registers */
	uint64_t pc;
	bool is_return; /* @pc follows a call */
};

struct rule_unwinder;

/* A walk that is under way. */
struct walk {
	struct rule_unwinder *unwinder;
	const struct address_space *space;
	const struct stack_dump *dump;
	uint64_t dump_start;
	size_t nr_offsets; /* offsets at which the dump holds a whole word */
	size_t fetched;	   /* the cache lines before this offset have been prefetched */
	size_t nr_pending; /* pending returns used so far */
	uint64_t top;	   /* as in struct unwound_stack */
	bool is_made;	   /* this frame's function was not called */
	bool is_elsewhere; /* a signal has interrupted this frame on another stack */
	struct frame frame;

	bool is_plain; /* the walk cache is in use, and can express this walk */
};

static inline bool read_word(const struct walk *walk, uint64_t address, uint64_t *ret)
{
	uint64_t offset = address - walk->dump_start;

	if (offset >= walk->nr_offsets)
		return false;
	memcpy(ret, walk->dump->bytes + offset, sizeof(*ret));
	return true;
}

/* The value of a register; any value if it is not known. */
static inline uint64_t register_value(const struct walk *walk, uint8_t number)
{
	const struct frame *frame = &walk->frame;
	uint64_t value = frame->registers[number];

	if (frame->in_dump & (1u << number))
		memcpy(&value, walk->dump->bytes + frame->saved_at[number], sizeof(value));
	return value;
}

static inline bool get_register(const struct walk *walk, uint8_t number, int32_t offset,
				uint64_t *ret)
{
	*ret = register_value(walk, number) + (uint64_t)(int64_t)offset;
	return walk->frame.known & (1u << number);
}

static inline void set_register(struct frame *frame, uint8_t number, uint64_t value)
{
	frame->registers[number] = value;
	frame->known |= 1u << number;
	frame->in_dump &= ~(1u << number);
}

/* Reads a value that is still in the dump. */
static inline void load_register(struct walk *walk, uint8_t number)
{
	struct frame *frame = &walk->frame;

	frame->registers[number] = register_value(walk, number);
	frame->in_dump &= ~(1u << number);
}

/* @saved is sorted by number within each part, and the return address has the highest one. */
static inline bool returns_by_cfa(const struct cfi_rule *rule)
{
	return rule->nr_at_cfa && rule->saved[rule->nr_at_cfa - 1].number == CFI_RETURN_ADDRESS;
}

/* Goes to the caller by @rule, which is of the kind CFI_FRAME. */
enum step walk_by_rule(struct walk *walk, const struct cfi_rule *rule);

/* Goes to the caller by the frame pointer, for code without call frame information. */
enum step walk_by_frame_pointer(struct walk *walk);

#endif
