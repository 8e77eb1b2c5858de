/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Plans probes for LEAK_ALLOC() and LEAK_FREE() of <leaktools/leak_probes.h>, by which a program
 * reports its own pools: resources of the kind "pool".
 */
#ifndef LEAKTOOLS_PROBES_USDT_POOL_PROBES_H
#define LEAKTOOLS_PROBES_USDT_POOL_PROBES_H

#include "probes/plan/probe_set.h"

/* True if USDT probes of that name are these. */
bool usdt_pool_probes_has_name(const char *name);

/* The rows of their calls, by number; NULL: there are no more. */
const struct probe_schema *usdt_pool_probes_row(size_t nr);

/*
 * Appends a file with these probes to @set, if @source has some. Returns 0 or a negative errno, not
 * reported.
 */
int usdt_pool_probes_plan_file(struct probe_set *set, const struct probe_source *source);

#endif
