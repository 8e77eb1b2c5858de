/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds the probes on resources that leakprobe has registered in tracefs, for leakrec to record. */
#ifndef LEAKTOOLS_PROBES_REGISTERED_RESOURCES_H
#define LEAKTOOLS_PROBES_REGISTERED_RESOURCES_H

#include "probes/plan/probe_set.h"

#include "common/schema/resource_schema.h"

/*
 * Adds to @set those of leakprobe's registered probes on files of process @pid that are on
 * resources. Their schemas are added to @schemas, which must outlive @set. Returns 0 or a negative
 * errno, reported.
 */
int registered_resources_add(struct probe_set *set, pid_t pid, struct resource_schemas *schemas);

#endif
