/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The interface of an unwinder: a struct of operations, and the stack that they make of a dump.
 * dump_unwinder.h lets several unwinders try in turn.
 */
#ifndef LEAKTOOLS_UNWIND_UNWINDER_H
#define LEAKTOOLS_UNWIND_UNWINDER_H

#include "unwind/frames/stack_dump.h"
#include "unwind/modules/address_space.h"

/* An unwound stack, innermost frame first. */
struct unwound_stack {
	uint64_t addresses[STACK_MAX_FRAMES];
	bool is_call[STACK_MAX_FRAMES]; /* a return address; false: the interrupted instruction */
	size_t nr;
	bool complete;	/* ends where the CFI says that the stack ends */
	bool truncated; /* goes on past the end of the dump */
	bool elsewhere; /* complete, but goes on on another stack, which the dump does not hold */
	/*
	 * Truncated: the end of the first missing word. Otherwise: the end of the part of the stack
	 * that unwinding needed. 0: not known.
	 */
	uint64_t top;
};

struct unwinder_ops {
	/*
	 * Unwinds @dump in @space (NULL: unknown) as far as possible. Returns 0, however far that
	 * is; -EOPNOTSUPP: this unwinder cannot handle the dump, the next one must; or -ENOMEM.
	 */
	int (*unwind)(void *unwinder, const struct address_space *space,
		      const struct stack_dump *dump, struct unwound_stack *ret);
	void (*deinit)(void *unwinder);
};

/* An unwinder and its operations. */
struct unwinder {
	const struct unwinder_ops *ops;
	void *state; /* what @ops take */
};

#endif
