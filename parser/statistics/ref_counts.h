/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reference counts: how many references each object has, and the history of how it came to that,
 * merged by stacks. Objects that are gone are forgotten.
 */
#ifndef LEAKTOOLS_PARSER_REF_COUNTS_H
#define LEAKTOOLS_PARSER_REF_COUNTS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct probe_schema;

/* What was done from one stack. */
struct ref_history {
	uint32_t stack_id; /* STACK_NONE: the stacks beyond REF_MAX_STACKS */
	const struct probe_schema *schema;
	uint64_t refs, unrefs;
};

#define REF_MAX_STACKS 256 /* of an object */

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
 * One more reference, or one less (@change is 1 or -1), made from a stack by @schema's function. An
 * object that is not known comes to be with a count of 0 before. *@ret_count is the count then.
 * Returns 0 or -ENOMEM.
 */
int ref_counts_change(struct ref_counts *counts, pid_t pid, uint64_t key, int change,
		      uint32_t stack_id, const struct probe_schema *schema, uint64_t *ret_count);

/* Forgets the object, if it is known. */
void ref_counts_remove(struct ref_counts *counts, pid_t pid, uint64_t key);

#endif
