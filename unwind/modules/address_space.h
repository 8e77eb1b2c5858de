/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The processes' address spaces, built from the recording's mapping events: for each pid a sorted
 * list of file mappings that do not overlap. A newer mapping displaces older ones.
 *
 * Processes that forked share one list until either changes. Then they share the runs of mappings
 * that did not change. No two states of any lists have the same generation, so whatever was
 * computed for a generation stays valid for it.
 */
#ifndef LEAKTOOLS_UNWIND_ADDRESS_SPACE_H
#define LEAKTOOLS_UNWIND_ADDRESS_SPACE_H

#include "unwind/modules/module.h"

struct mapping {
	uint64_t start, end; /* [start, end) */
	uint64_t file_offset;
	struct module *module;
};

struct mapping_run;

struct address_space {
	unsigned refs;
	uint64_t id;	     /* survives changes */
	uint64_t generation; /* from 1; each change gives a new one */
	struct mapping_run **runs;
	size_t nr_runs;
	size_t nr; /* mappings */
};

struct process;

/*
 * Exited processes keep their mappings for a while, because other threads may outlive the main one.
 */
#define MAX_EXITED 1024

struct address_spaces {
	struct process *by_pid;
	uint64_t seed; /* of its hashes */
	uint64_t last_id, last_generation;
	pid_t exited[MAX_EXITED]; /* a ring, the oldest at next_exited; 0: free */
	unsigned next_exited;
	bool warned_full;
};

void address_spaces_init(struct address_spaces *spaces);
void address_spaces_deinit(struct address_spaces *spaces);

/*
 * Maps @module (NULL: nothing) at [start, start + len), over whatever was there. Returns 0 or
 * -ENOMEM.
 */
int address_spaces_map(struct address_spaces *spaces, const struct stack_mapping *mapping,
		       struct module *module);
int address_spaces_fork(struct address_spaces *spaces, pid_t child, pid_t parent);
void address_spaces_exec(struct address_spaces *spaces, pid_t pid);
void address_spaces_exit(struct address_spaces *spaces, pid_t pid);

/* The address space of @pid, or NULL if nothing is known of it. Valid until the next change. */
const struct address_space *address_spaces_find(const struct address_spaces *spaces, pid_t pid);

/* The mapping that holds @address, or NULL. @space may be NULL. */
const struct mapping *address_space_find(const struct address_space *space, uint64_t address);

/* Calls @visit for each mapping, in the order of addresses. */
void address_space_for_each(const struct address_space *space,
			    void (*visit)(void *context, const struct mapping *mapping),
			    void *context);

/*
 * Finds the mapping at @address, or else its neighbours below and above. Returns how many there
 * are: up to two.
 */
size_t address_space_neighbours(const struct address_space *space, uint64_t address,
				const struct mapping *ret[2]);

#endif
