/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Unwinds stack dumps by the modules' call frame information, through libdwfl: slow, but it handles
 * everything that occurs.
 *
 * Each address space has a Dwfl that stays attached, because a new one for each sample takes ten
 * times as long. A change of the address space makes a new one necessary. The least recently used
 * ones are dropped.
 */
#ifndef LEAKTOOLS_UNWIND_DWFL_UNWINDER_H
#define LEAKTOOLS_UNWIND_DWFL_UNWINDER_H

#include "unwind/frames/unwinder.h"
#include "unwind/modules/debuginfo.h"
#include "unwind/modules/owner_time.h"

#define DWFL_UNWINDER_MAX_SPACES 32

struct space_dwfl;

struct dwfl_unwinder {
	struct module_table *modules;
	struct debuginfo *debuginfo;
	struct owner_time *time;
	struct space_dwfl *spaces[DWFL_UNWINDER_MAX_SPACES];
	uint64_t clock;	       /* counts uses, for LRU */
	uint64_t kept_bytes;   /* by libdw, of files that are not root's */
	uint64_t copies_epoch; /* debuginfo_must_close() */
};

extern const struct unwinder_ops dwfl_unwinder_ops;

void dwfl_unwinder_init(struct dwfl_unwinder *unwinder, struct module_table *modules,
			struct debuginfo *debuginfo, struct owner_time *time);

#endif
