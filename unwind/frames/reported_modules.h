/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The modules of an address space that libdwfl knows: those with code, of the samples' machine. */
#ifndef LEAKTOOLS_UNWIND_REPORTED_MODULES_H
#define LEAKTOOLS_UNWIND_REPORTED_MODULES_H

#include "unwind/modules/address_space.h"
#include "unwind/modules/debuginfo.h"
#include "unwind/modules/owner_time.h"

struct reported_module;

struct reported_modules {
	struct reported_module *list; /* in the order of their Dwfl_Module's address */
	size_t nr;
	bool are_late; /* there was no time for some files in this window: owner_time.h */
};

/* Reports modules to @dwfl. */
struct module_reporter {
	struct module_table *modules;
	struct debuginfo *debuginfo;
	struct owner_time *time;
	Dwfl *dwfl;
	uint16_t machine;
	uint64_t kept_bytes; /* by libdw so far, of files that are not root's; it grows */
};

/* Returns 0 or -ENOMEM. Release with reported_modules_deinit() in either case. */
int reported_modules_init(struct reported_modules *ret, struct module_reporter *reporter,
			  const struct address_space *space);
void reported_modules_deinit(struct reported_modules *modules);

/*
 * The module whose file libdwfl reads, or NULL. By what the file says of its segments, that may be
 * at addresses where others are mapped, or nothing.
 */
struct module *reported_modules_find(const struct reported_modules *modules,
				     const Dwfl_Module *dwfl_module);

#endif
