/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The probes on one or more files: what leakprobe adds, lists and deletes, and what leakrec
 * records. A probe_set is planned (allocator_plan.h, ../resources/resource_plan.h), and then
 * registered in tracefs, or found there.
 */
#ifndef LEAKTOOLS_PROBES_PROBE_SET_H
#define LEAKTOOLS_PROBES_PROBE_SET_H

#include "probes/plan/probe_file.h"

struct probe_set {
	struct probe_file *files;
	size_t nr_files;
	uint64_t limit_ns;   /* for planning one file; 0: ANALYSIS_LIMIT_NS */
	bool with_operators; /* C++'s are planned also where they call malloc: for mismatches */
};

/*
 * Renames the set's groups as probes that this process makes for itself (leakrec...). Call it
 * between plan and register.
 */
int probe_set_make_own(struct probe_set *set);

/*
 * Looks the planned probes up in tracefs: those that leakprobe registered before get their
 * tracefs_id, and the offset at which they are, which another version may have chosen. Returns how
 * many of the set's probes are there, or a negative errno.
 */
int probe_set_find(struct probe_set *set);

/*
 * Registers what is not there yet and fills in every tracefs_id. On failure it reports the kernel's
 * reason (error_log), removes what it added and returns a negative errno. -EINTR, not reported: a
 * signal is waiting (interrupted.h), and the caller is to remove what was added.
 */
int probe_set_register(struct probe_set *set);

/* Removes the probes that probe_set_register() added. Returns 0 or the first error, reported. */
int probe_set_unregister(struct probe_set *set);

/* Frees the memory; registered probes stay. */
void probe_set_deinit(struct probe_set *set);

/* Moves *@file, which is left empty, to the end of @set. Returns 0 or -ENOMEM. */
int probe_set_append(struct probe_set *set, struct probe_file *file);

/*
 * Moves all files of @from into @to, except those whose group @to already has (the same file seen
 * through two processes). @from is left empty. Returns 0 or -ENOMEM.
 */
int probe_set_merge(struct probe_set *to, struct probe_set *from);

/*
 * Removes the probes of leakrecs that are gone. Probes still in use stay. Returns the number
 * removed, or a negative errno.
 */
int probe_set_reap(void);

#endif
