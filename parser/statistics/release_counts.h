/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Counts which calls release the blocks of which sites: for each pair of an allocation's stack and
 * a release's. Which sites are of interest is known only when the recording has been read, so all
 * are counted. Most sites have one or two calls that release their blocks; hostile recordings have
 * any number, so the pairs are limited.
 */
#ifndef LEAKTOOLS_PARSER_RELEASE_COUNTS_H
#define LEAKTOOLS_PARSER_RELEASE_COUNTS_H

#include <stddef.h>
#include <stdint.h>

#define RELEASE_COUNTS_MAX 131072 /* pairs, of some 100 bytes each */

struct release_counts;

/* So many calls from one stack. */
struct stack_count {
	uint32_t stack_id;
	uint64_t count;
};

/* NULL: out of memory. */
struct release_counts *release_counts_create(void);
void release_counts_destroy(struct release_counts *counts);

/* A call from stack @released releases a block that was allocated from stack @allocated. */
void release_counts_add(struct release_counts *counts, uint32_t allocated, uint32_t released);
/* It has not released it after all. */
void release_counts_withdraw(struct release_counts *counts, uint32_t allocated, uint32_t released);

/*
 * The stacks that released the blocks of the @nr sites in @allocated, which are sorted, each stack
 * once, the most frequent first. The caller frees *@ret. Returns 0 or -ENOMEM.
 */
int release_counts_of(const struct release_counts *counts, const uint32_t *allocated, size_t nr,
		      struct stack_count **ret, size_t *ret_nr);

/* The releases, of any site, that are in no pair: there were too many, or no memory for more. */
uint64_t release_counts_uncounted(const struct release_counts *counts);

/* Joins those of the same stack, and sorts: the most frequent first. Returns how many remain. */
size_t stack_counts_join(struct stack_count *counts, size_t nr);

#endif
