/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Unwinds stack dumps: by cached rules (rule_unwinder.h, arm64_unwinder.h), which is fast, and by
 * libdwfl (dwfl_unwinder.h) what these cannot handle. Counts the results.
 */
#ifndef LEAKTOOLS_UNWIND_DUMP_UNWINDER_H
#define LEAKTOOLS_UNWIND_DUMP_UNWINDER_H

#include "unwind/frames/arm64_unwinder.h"
#include "unwind/frames/dwfl_unwinder.h"
#include "unwind/frames/rule_unwinder.h"

enum { UNWINDER_RULES, UNWINDER_ARM64, UNWINDER_DWFL, NR_UNWINDERS };

/* Points into itself: it must not be moved. */
struct dump_unwinder {
	struct unwinder unwinders[NR_UNWINDERS]; /* in the order in which they try */
	struct rule_unwinder rules;
	struct arm64_unwinder arm64;
	struct dwfl_unwinder dwfl;
	struct stack_unwind_stats stats;
};

/* @own_vdso as for cfi_rules_init(). Returns 0 or -ENOMEM. */
int dump_unwinder_init(struct dump_unwinder *unwinder, struct module_table *modules,
		       struct debuginfo *debuginfo, bool own_vdso);
/* Accepts one that is all zeros. */
void dump_unwinder_deinit(struct dump_unwinder *unwinder);

/*
 * Unwinds @dump in @space (NULL: unknown) as far as possible, and counts how it ended. Returns 0,
 * however far that is, or -ENOMEM.
 */
int dump_unwinder_unwind(struct dump_unwinder *unwinder, const struct address_space *space,
			 const struct stack_dump *dump, struct unwound_stack *ret);

#endif
