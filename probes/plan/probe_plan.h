/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Plans the probes for the allocator in an ELF file: on which functions, at which offsets, and what
 * they record. Nothing is registered here.
 */
#ifndef LEAKTOOLS_PROBES_PROBE_PLAN_H
#define LEAKTOOLS_PROBES_PROBE_PLAN_H

#include "probes/allocators/allocator.h"
#include "probes/plan/probe_set.h"

/*
 * Plans the probes for one file and appends it to @set. @allocator is what the file has of an
 * allocator; it may have no functions. Returns 0 or a negative errno, reported.
 */
int probe_plan_file(struct probe_set *set, const struct probe_source *source,
		    const struct allocator *allocator);

#endif
