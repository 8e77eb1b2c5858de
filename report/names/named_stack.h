/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A stack by names, as all formats show it: each frame has one, inlined functions are frames of
 * their own, and marks ("truncated") are frames too. Names are as the target has them: untrusted,
 * and for each format to escape.
 */
#ifndef LEAKTOOLS_REPORT_NAMED_STACK_H
#define LEAKTOOLS_REPORT_NAMED_STACK_H

#include "report/names/name_pool.h"
#include "unwind/stacks/stack_store.h"

/* Strings are the pool's: equal names are equal pointers. */
struct named_frame {
	/* The function; "libx.so+0x1234" without a symbol, "0x7f0012345678" without a module,
	 * "(truncated)" and "(incomplete)" for the marks. */
	const char *name;
	const char *module; /* path; NULL: not known */
	const char *file;   /* NULL: not known */
	int line;
	uint64_t address;	/* in the process */
	uint64_t module_offset; /* 0 without a module */
	bool has_symbol;
	bool inlined;
	bool is_mark;
};

struct named_stack {
	struct name_pool *names;    /* the caller's */
	struct named_frame *frames; /* innermost first */
	size_t nr, max;
};

/* Zero it and set @names first. Returns 0 or -ENOMEM. */
int named_stack_load(struct named_stack *stack, struct stack_store *store, uint32_t stack_id);
void named_stack_deinit(struct named_stack *stack);

/* Behind the last slash: "libc.so.6". */
const char *named_stack_basename(const char *path);

#endif
