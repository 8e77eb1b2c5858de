/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Plans the probes on resources in one file: where in its functions, and what they record. A
 * process without privileges does that (resource_plan.c); the names of events and the rows that
 * belong to them are made in both processes.
 */
#ifndef LEAKTOOLS_PROBES_RESOURCE_TARGETS_H
#define LEAKTOOLS_PROBES_RESOURCE_TARGETS_H

#include "probes/plan/probe_set.h"
#include "probes/resources/resource_functions.h"

/*
 * Adds to @set the probes on the functions of @specs that are in @image, which is @mapped's, and
 * marks these in @found. @debug: its debug file, or NULL. Returns 0 or a negative errno, not
 * reported.
 */
int resource_targets_plan(struct probe_set *set, const struct mapped_file *mapped,
			  const struct elf_image *image, const struct debug_symbols_files *debug,
			  struct resource_specs *specs, struct found_functions *found);

/* Sets the kind, the role and the function. */
void resource_targets_name(const struct pair_spec *spec, const struct pair_call *call,
			   struct resource_event *ret);

/* Finds or adds the row of @event, which is @call's. Returns as resource_schemas_add(). */
int resource_targets_row(struct resource_schemas *schemas, const struct pair_call *call,
			 const struct resource_event *event, struct resource_call **ret);

#endif
