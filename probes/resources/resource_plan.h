/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From what the user says of resources (pair_spec.h) to probes: in which of a process's files the
 * functions are, where in them, and what the events record.
 */
#ifndef LEAKTOOLS_PROBES_RESOURCE_PLAN_H
#define LEAKTOOLS_PROBES_RESOURCE_PLAN_H

#include "probes/resources/pair_spec.h"
#include "probes/plan/probe_set.h"

/* All that is asked for. */
struct resource_wishes {
	struct pair_spec *specs;
	size_t nr;
	struct resource_schemas schemas; /* of the planned probes, which it must outlive */
};

/*
 * Adds what an option's argument says; @option, "--pair" or "--ref", stands in messages. Returns 0
 * or a negative errno, reported.
 */
int resource_wishes_add(struct resource_wishes *wishes, const char *option, const char *text);
void resource_wishes_deinit(struct resource_wishes *wishes);

/*
 * Adds to @set the probes on what process @pid has mapped of these functions. A function that none
 * of its files has is an error. Returns 0 or a negative errno, reported.
 */
int resource_plan_pid(struct probe_set *set, pid_t pid, struct resource_wishes *wishes);

/* True if process @pid has mapped all of these functions; silent. */
bool resource_wishes_are_mapped(const struct resource_wishes *wishes, pid_t pid);

/*
 * Adds to @set those of leakprobe's registered probes on files of process @pid that are resources'.
 * Their schemas are in @schemas. Returns 0 or a negative errno, reported.
 */
int resource_plan_registered(struct probe_set *set, pid_t pid, struct resource_schemas *schemas);

#endif
