/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Unwinds stack dumps by the modules' call frame information, through libdwfl: slow, but able to do
 * all that occurs. dump_unwinder.h is the fast way, and turns here where it can't go on.
 *
 * A Dwfl is made for each address space and kept attached: a new one for each sample costs ten
 * times as much. It is made anew when the address space has changed; a few are kept, by last use.
 */
#ifndef LEAKTOOLS_UNWIND_DWFL_UNWINDER_H
#define LEAKTOOLS_UNWIND_DWFL_UNWINDER_H

#include "unwind/modules/address_space.h"
#include "unwind/modules/debuginfo.h"

#define DWFL_UNWINDER_MAX_SPACES 32

/* An unwound stack, innermost frame first. */
struct unwound_stack {
	uint64_t addresses[STACK_MAX_FRAMES];
	bool is_call[STACK_MAX_FRAMES]; /* a return address; else where the code was interrupted */
	size_t nr;
	bool complete;	/* ends where the CFI says that the stack ends */
	bool truncated; /* goes on past the end of the dump */
	/*
	 * Truncated: the end of the first word that is missing. Else: up to where the stack was
	 * needed. 0: not known.
	 */
	uint64_t top;
};

struct space_dwfl;

struct dwfl_unwinder {
	struct module_table *modules;
	struct debuginfo *debuginfo;
	struct space_dwfl *spaces[DWFL_UNWINDER_MAX_SPACES];
	uint64_t clock; /* counts uses */
};

void dwfl_unwinder_init(struct dwfl_unwinder *unwinder, struct module_table *modules,
			struct debuginfo *debuginfo);
void dwfl_unwinder_deinit(struct dwfl_unwinder *unwinder);

/*
 * Unwinds @dump in @space (NULL: unknown) as far as it goes. Returns 0, also when that is not far,
 * or -ENOMEM.
 */
int dwfl_unwinder_unwind(struct dwfl_unwinder *unwinder, const struct address_space *space,
			 const struct stack_dump *dump, struct unwound_stack *ret);

#endif
