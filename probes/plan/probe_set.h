/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The probes on one or more files: what leakprobe adds, lists and deletes, and what leakrec
 * records. A probe_set is planned (allocator_plan.h, ../resources/resource_plan.h), then registered
 * in tracefs, or found there.
 */
#ifndef LEAKTOOLS_PROBES_PROBE_SET_H
#define LEAKTOOLS_PROBES_PROBE_SET_H

#include "probes/plan/probe_file.h"

struct probe_set {
	struct probe_file *files;
	size_t nr_files;
	uint64_t limit_ns;   /* time to plan one file; 0: ANALYSIS_LIMIT_NS */
	bool with_operators; /* plan C++ operators also if they call malloc: for mismatches */
};

/*
 * Renames the groups of the set as probes that this process makes for itself (leakrec...), which
 * fetch the address of the return address (fetches_caller_at). Call it between planning and
 * registering. Returns 0 or a negative errno, reported.
 */
int probe_set_make_own(struct probe_set *set);

/*
 * Finds the planned probes in tracefs. Those that leakprobe registered get their tracefs_id, and
 * their offset, which another version may have chosen. Returns how many were found, or a negative
 * errno, reported.
 */
int probe_set_find(struct probe_set *set);

/*
 * Registers the probes that tracefs does not have, and sets every tracefs_id. On failure it reports
 * the kernel's reason (error_log), removes what it added and returns a negative errno. -EINTR, not
 * reported: a signal is pending (interrupted.h), and the caller must remove what was added.
 */
int probe_set_register(struct probe_set *set);

/* Removes the probes that probe_set_register() added. Returns 0 or the first error, reported. */
int probe_set_unregister(struct probe_set *set);

/* Frees the memory; registered probes stay. */
void probe_set_deinit(struct probe_set *set);

/* Moves *@file, which is left empty, to the end of @set. Returns 0 or -ENOMEM. */
int probe_set_append(struct probe_set *set, struct probe_file *file);

/*
 * Moves the files of @from to @to, except those that @to already has (the same file in two
 * processes). @from is left empty. Returns 0 or -ENOMEM.
 */
int probe_set_merge(struct probe_set *to, struct probe_set *from);

/*
 * Removes the probes of leakrec processes that have ended. Probes in use stay. Returns the number
 * removed, or a negative errno. Removes none in a container: its /proc lacks the machine's others.
 */
int probe_set_reap(void);

#endif
