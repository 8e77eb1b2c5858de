/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Probes on what a program says itself of its own pools, by LEAK_ALLOC() and LEAK_FREE()
 * (<leaktools/leak_probes.h>): resources of the kind "pool".
 */
#ifndef LEAKTOOLS_PROBES_USDT_POOL_PROBES_H
#define LEAKTOOLS_PROBES_USDT_POOL_PROBES_H

#include "probes/plan/probe_set.h"

/* True if a probe of that name is one of these. */
bool usdt_pool_probes_has_name(const char *name);

/*
 * Appends a file with the probes to @set, if @source has some. Returns 0 or a negative errno, not
 * reported.
 */
int usdt_pool_probes_plan_file(struct probe_set *set, const struct probe_source *source);

#endif
