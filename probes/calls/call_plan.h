/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Plans the probes of a narrowed recording: on the calls that allocate and release the blocks of
 * one cause, not on the functions that they call. Such a call is executed rarely, where the
 * function is called a million times a second (docs/narrowing.md).
 *
 * Of each stack, the outermost call of a function of the schema is probed: the call of operator
 * new, not that of malloc in it. A call that allocates gets two probes, on the call and behind it.
 */
#ifndef LEAKTOOLS_PROBES_CALL_PLAN_H
#define LEAKTOOLS_PROBES_CALL_PLAN_H

#include "probes/calls/call_list.h"
#include "probes/plan/probe_set.h"

/*
 * Plans the probes for process @pid, and says what they leave out. Sets the sites of @list. Returns
 * 0 or a negative errno, reported. Release *@ret with probe_set_deinit() if that is 0.
 */
int call_plan_pid(struct probe_set *ret, pid_t pid, struct call_list *list);

/* The entry of a function that a stack has. */
struct call_entry {
	uint64_t address; /* given: behind a call in it, in the process; 0: there is none */
	/* What is found. */
	int file_fd;	 /* in the set; -1: it can have no probe */
	uint64_t offset; /* in the file */
	bool is_stepped; /* the kernel needs a second trap for it */
};

/*
 * Plans probes on the entries of the functions that have the @entries, which are the stack's. A
 * piece of code that a function is split into counts as one. Says nothing of those that can have no
 * probe. Returns as call_plan_pid(), but reports nothing, except for a lack of memory. *@ret owns
 * the descriptors.
 */
int call_plan_entries(struct probe_set *ret, pid_t pid, struct call_entry *entries, size_t nr);

#endif
