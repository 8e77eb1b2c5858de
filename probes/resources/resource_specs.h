/* SPDX-License-Identifier: GPL-2.0-or-later */
/* All that the user asks to record of resources: the arguments of --pair and --ref, parsed. */
#ifndef LEAKTOOLS_PROBES_RESOURCE_SPECS_H
#define LEAKTOOLS_PROBES_RESOURCE_SPECS_H

#include "probes/resources/pair_spec.h"

struct resource_specs {
	struct pair_spec *pairs;
	size_t nr;
	struct resource_schemas schemas; /* of the planned probes, which it must outlive */
};

/*
 * Adds one argument. @option, "--pair" or "--ref", is named in messages. Returns 0 or a negative
 * errno, reported.
 */
int resource_specs_add(struct resource_specs *specs, const char *option, const char *text);
void resource_specs_deinit(struct resource_specs *specs);

#endif
