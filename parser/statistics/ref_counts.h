/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reference counts: the number of references to each object, and which stacks changed it. Destroyed
 * objects are forgotten.
 */
#ifndef LEAKTOOLS_PARSER_REF_COUNTS_H
#define LEAKTOOLS_PARSER_REF_COUNTS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct probe_schema;

/* The changes from one stack. */
struct ref_history {
	uint32_t stack_id; /* STACK_NONE: all stacks beyond REF_MAX_STACKS */
	const struct probe_schema *schema;
	uint64_t refs, unrefs;
};

#define REF_MAX_STACKS 256 /* per object */

struct ref_object {
	uint64_t count;
	struct ref_history *history; /* in the order of their first use */
	size_t nr_history;
};

struct ref_counts;

/* NULL: out of memory. */
struct ref_counts *ref_counts_create(void);
void ref_counts_destroy(struct ref_counts *counts);

/* The object of process @pid, or NULL. Valid until the next change. */
const struct ref_object *ref_counts_find(const struct ref_counts *counts, pid_t pid, uint64_t key);

/*
 * Adds or removes a reference (@change is 1 or -1), from a stack, by @schema's function. A new
 * object begins with a count of 0. *@ret_count is the new count. Returns 0 or -ENOMEM.
 */
int ref_counts_change(struct ref_counts *counts, pid_t pid, uint64_t key, int change,
		      uint32_t stack_id, const struct probe_schema *schema, uint64_t *ret_count);

/* Forgets the object. It may be unknown. */
void ref_counts_remove(struct ref_counts *counts, pid_t pid, uint64_t key);

#endif
