/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Sites that may have a cause in common (causes.h), and judging several of them as if they were
 * one. A bag is a list of such sites. If its verdict as a whole fits, it becomes a cause.
 */
#ifndef LEAKTOOLS_PARSER_CAUSE_BAGS_H
#define LEAKTOOLS_PARSER_CAUSE_BAGS_H

#include "parser/judging/judge.h"

#define CAUSE_MAX_FUNCTIONS 128 /* of a path; functions further inside are not compared */
#define CAUSE_NO_MEMBER	    SIZE_MAX

/*
 * A site that may join others. A site that holds nothing belongs to no cause, but the blocks that
 * it freed show how long blocks of its callers live.
 */
struct cause_member {
	const struct site *counts;
	struct site_verdict *site; /* NULL: it holds nothing */
	/*
	 * The functions that call it, the outermost first, without recursion, and for each of them
	 * the number of frames from the outermost one to it.
	 */
	uint64_t *path;
	uint32_t *frames;
	uint32_t nr;
	uint32_t version; /* equal: versions of one stack (cause_versions.h), with equal paths */
	double weight;
	size_t next; /* in its bag */
};

/* A list of members that are judged together. */
struct cause_bag {
	size_t first, last;
	/* These count only members that hold blocks. */
	size_t lowest, highest; /* by path */
	size_t nr;
	double weight;
};

/* A bag that is a cause. */
struct cause_found {
	struct cause_bag bag;
	struct site_verdict verdict;
	struct site sum;
	bool is_dropped; /* another cause has taken over its members */
	/* All its members pass that function, and are called by different ones (cause_callee.h). */
	bool has_callee;
	uint64_t callee;
};

struct cause_finder {
	struct verdicts *verdicts;
	const struct verdict_input *input;
	struct judge *judge;
	struct cause_member *members;
	size_t nr_members;
	double *weight_before; /* [i]: of the first i members */
	struct cause_found *found;
	size_t nr_found;
	uint32_t *order; /* the blocks of one bag */
	int err;
};

/* --- Bags --- */

struct cause_bag cause_bag_empty(void);
/* Adds the member @index, which must be in no other bag that is still used. */
void cause_bag_put(struct cause_finder *finder, struct cause_bag *bag, size_t index);
/* Moves all members of @from to @bag. */
void cause_bag_pour(struct cause_finder *finder, struct cause_bag *bag,
		    const struct cause_bag *from);

/* The number of functions that the paths of two members share, the outermost ones. */
size_t cause_nr_shared(const struct cause_member *a, const struct cause_member *b);

/* --- Judging them --- */

bool cause_is_leak(enum verdict verdict);
/* True if the blocks are too few for a verdict of their own that is worth much. */
bool cause_is_weak(const struct site_verdict *verdict);

/*
 * Judges the blocks of the bag together. *@ret_ages is valid until the next call. The caller calls
 * site_sum_deinit(&ret->sum), whatever is returned: 0 or -ENOMEM.
 */
int cause_judge(struct cause_finder *finder, const struct cause_bag *bag, struct cause_found *ret,
		struct judged_ages *ret_ages);

/* The verdict that a bag needs to become a cause. */
enum cause_wanted { CAUSE_THAT_LEAKS, CAUSE_WITHOUT_LEAK };

/*
 * Judges the bag as a whole. Returns true if the verdict is the wanted one, and then adds the bag
 * to finder->found, unless this @is_trial. Errors go to finder->err.
 */
bool cause_become(struct cause_finder *finder, const struct cause_bag *bag,
		  enum cause_wanted wanted, bool is_trial);

/*
 * Makes the bag, which holds something, the cause *@found, whatever its verdict. Of a bag with one
 * member that holds blocks, it is the member's own. Errors go to finder->err.
 */
void cause_become_part(struct cause_finder *finder, const struct cause_bag *bag,
		       struct cause_found *found);

/* Makes the members [@begin, @end), which are versions of one stack, a cause. */
void cause_become_versions(struct cause_finder *finder, size_t begin, size_t end);

/* Makes one member a cause of its own, if it holds anything. */
void cause_become_single(struct cause_finder *finder, size_t index);

#endif
