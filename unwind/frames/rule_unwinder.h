/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Unwinds stack dumps by cached rules (cfi_rules.h): a frame costs a lookup of its address and of
 * where its rule says registers were saved. A dump that meets a row which is no rule, or memory
 * outside the dump that a module's file may hold, is too complex for it; so are all dumps of other
 * machines than x86-64.
 *
 * Where there is no call frame information, as for code made at run time, a frame pointer is
 * assumed, as libdwfl does.
 */
#ifndef LEAKTOOLS_UNWIND_RULE_UNWINDER_H
#define LEAKTOOLS_UNWIND_RULE_UNWINDER_H

#include "unwind/frames/cfi_rules.h"
#include "unwind/frames/dump_registers.h"
#include "unwind/frames/unwinder.h"
#include "unwind/frames/walk_cache.h"

#define RULE_UNWINDER_CACHE_SIZE 16384 /* a power of two */

/*
 * The rule of an address in a state of an address space, so that the tables of rules need no
 * lookup.
 */
struct cached_rule {
	uint64_t address;
	uint64_t generation; /* 0: free */
	const struct cfi_rule *rule;
};

struct rule_unwinder {
	struct cfi_rules rules;
	struct cached_rule *cache;
	uint64_t epoch;			 /* of @rules, when the cache was filled */
	struct dump_registers registers; /* of the dump */
	struct walk_cache walks;
	struct walk_frame frames[WALK_CACHE_MAX_FRAMES]; /* of the walk that is under way */
};

extern const struct unwinder_ops rule_unwinder_ops;

/* @own_vdso as for cfi_rules_init(). Returns 0 or -ENOMEM. */
int rule_unwinder_init(struct rule_unwinder *unwinder, struct module_table *modules,
		       struct debuginfo *debuginfo, bool own_vdso);

#endif
