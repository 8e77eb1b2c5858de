/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Plans the probes on resources: on which functions of a process's files, where in them, and what
 * they record.
 */
#ifndef LEAKTOOLS_PROBES_RESOURCE_PLAN_H
#define LEAKTOOLS_PROBES_RESOURCE_PLAN_H

#include "probes/plan/probe_set.h"
#include "probes/resources/resource_specs.h"

/*
 * Adds to @set the probes on the functions of @specs that process @pid has mapped. A function that
 * none of its files has is an error. Returns 0 or a negative errno, reported.
 */
int resource_plan_pid(struct probe_set *set, pid_t pid, struct resource_specs *specs);

/*
 * Returns true if process @pid has mapped all functions of @specs, or if that cannot be told;
 * reports nothing.
 */
bool resource_plan_is_mapped(const struct resource_specs *specs, pid_t pid);

#endif
