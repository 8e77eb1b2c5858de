/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Unwinds stack dumps by cached rules (cfi_rules.h): a frame is a lookup of its address and of
 * where the rule says registers were saved. A stack that meets a row which is no rule, or memory
 * outside the dump that a module's file may hold, is left to libdwfl (dwfl_unwinder.h); so are all
 * of other machines than x86-64.
 *
 * Where there is no call frame information, as for code made at run time, a frame pointer is
 * assumed, as libdwfl does.
 */
#ifndef LEAKTOOLS_UNWIND_DUMP_UNWINDER_H
#define LEAKTOOLS_UNWIND_DUMP_UNWINDER_H

#include "unwind/frames/cfi_rules.h"
#include "unwind/frames/dwfl_unwinder.h"
#include "unwind/frames/walk_cache.h"

#define DUMP_UNWINDER_CACHE_SIZE 16384 /* a power of two */

/* What an address has come to in a state of an address space: the rules' tables not asked again. */
struct cached_rule {
	uint64_t address;
	uint64_t generation; /* 0: free */
	const struct cfi_rule *rule;
};

struct dump_unwinder {
	struct cfi_rules rules;
	struct dwfl_unwinder dwfl;
	struct cached_rule *cache;
	uint64_t epoch;			 /* of @rules, when the cache was filled */
	struct dump_registers registers; /* of the dump */
	struct walk_cache walks;
	struct walk_frame frames[WALK_CACHE_MAX_FRAMES]; /* of the walk that is under way */
	struct stack_unwind_stats stats;
};

/* @own_vdso as for cfi_rules_init(). Returns 0 or -ENOMEM. */
int dump_unwinder_init(struct dump_unwinder *unwinder, struct module_table *modules,
		       struct debuginfo *debuginfo, bool own_vdso);
void dump_unwinder_deinit(struct dump_unwinder *unwinder);

/*
 * Unwinds @dump in @space (NULL: unknown) as far as it goes, and counts how it ended. Returns 0,
 * also when that is not far, or -ENOMEM.
 */
int dump_unwinder_unwind(struct dump_unwinder *unwinder, const struct address_space *space,
			 const struct stack_dump *dump, struct unwound_stack *ret);

#endif
