/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A stack with named frames: all reports take names from here. An inlined function is a frame of
 * its own, and so is a mark such as "(truncated)". Names come from the target and are untrusted;
 * each format escapes them.
 */
#ifndef LEAKTOOLS_REPORT_NAMED_STACK_H
#define LEAKTOOLS_REPORT_NAMED_STACK_H

#include "parser/statistics/own_wrappers.h"
#include "report/names/name_pool.h"
#include "unwind/stacks/stack_store.h"

/* The pool owns the strings: equal names are equal pointers. */
struct named_frame {
	/*
	 * The function; "libx.so+0x1234" without a symbol, "0x7f0012345678" without a module,
	 * "(truncated)", "(incomplete)" or "(elsewhere)" for a mark.
	 */
	const char *name;
	const char *module;	/* a path; NULL: unknown */
	const char *file;	/* NULL: unknown */
	int line;		/* 0: unknown */
	uint64_t address;	/* in the process */
	uint64_t module_offset; /* 0 without a module */
	bool has_symbol;
	bool inlined;
	bool is_mark;
};

struct named_stack {
	/* Owned by the caller. */
	struct name_pool *names;
	const struct own_wrappers *wrappers; /* of the recording; NULL: not known */
	struct named_frame *frames;	     /* innermost first */
	size_t nr, max;
};

/*
 * Replaces the frames by those of stack @stack_id. Zero @stack and set @names before the first
 * call. Returns 0 or -ENOMEM.
 */
int named_stack_load(struct named_stack *stack, struct stack_store *store, uint32_t stack_id);
/* The same for readers that take no stack without frames: one that has none gets "(no stack)". */
int named_stack_load_frames(struct named_stack *stack, struct stack_store *store,
			    uint32_t stack_id);
void named_stack_deinit(struct named_stack *stack);

/*
 * The index of the frame that asked for the memory (common/schema/user_frame.h), of blocks that
 * @function gave; NULL: that is not known. 0 without frames.
 */
size_t named_stack_user_frame(const struct named_stack *stack, const char *function);

/* The part after the last slash: "libc.so.6". */
const char *named_stack_basename(const char *path);

#endif
