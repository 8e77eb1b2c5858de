/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The leaks of one `leaks` file as a plot needs them: a point for each, grouped by stack, and what
 * recurs. Pure data, no I/O but reading from a leaks_reader.
 */
#ifndef LEAKTOOLS_PLOT_LEAK_SET_H
#define LEAKTOOLS_PLOT_LEAK_SET_H

#include "common/size_range.h"
#include "plot/leaks/history_set.h"
#include "plot/leaks/leaks_reader.h"
#include "plot/labels/plot_colours.h"
#include "plot/labels/stack_label.h"

/* A failed allocation leaves the item's hh.tbl NULL instead of ending the program. */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

/* Process names kept for the title. */
#define LEAK_SET_NAMES_MAX 3
/* Groups that get a rank, and so a colour and a line in the legend. */
#define LEAK_SET_RANKS PLOT_RANKS

/* The leaks of one stack. */
struct leak_group {
	uint32_t stack;
	struct stack_label label;
	uint64_t nr_leaks;
	uint64_t nr_numbered; /* of these, those that have leak_point.nth */
	uint64_t total_bytes;
	uint64_t first_size_bytes;
	bool same_size; /* all have the first one's */
	int rank;	/* 0: most leaks; LEAK_SET_RANKS: not among the first */
	UT_hash_handle hh;
};

struct leak_point {
	uint64_t size_bytes;
	uint64_t nth; /* of its stack in time order, from 1; if no leak has bytes */
	uint64_t time_ns;
	uint64_t event;
	uint64_t age_ns; /* at the recording's end, or its process's */
	enum plot_verdict verdict;
	struct leak_group *group;
};

/* The leaks of one verdict. */
struct leak_verdict_sum {
	uint64_t nr_leaks;
	uint64_t total_bytes;
};

/* A size that several leaks have. */
struct recurring_size {
	uint64_t size_bytes;
	uint64_t nr_leaks;
};

struct leak_set {
	struct leak_point *points; /* in the file's order */
	size_t nr_points;
	size_t nr_points_allocated;
	uint64_t total_bytes; /* of the points; stays at its largest value rather than overflow */
	bool has_no_bytes;    /* there are points, all of handles or of empty blocks */
	uint64_t nr_outside_range;
	uint64_t nr_unknown_size;		   /* they have no place on a size axis */
	struct leak_group *groups;		   /* by stack */
	struct leak_group *ranked[LEAK_SET_RANKS]; /* NULL where there are fewer */
	struct leak_verdict_sum verdicts[PLOT_NR_VERDICTS];
	char *names[LEAK_SET_NAMES_MAX]; /* threads' names, in order of appearance */
	size_t nr_names;
	bool more_names;
	int32_t pid; /* of the first leak */
	bool several_pids;
	struct leaks_summary summary;
	struct history_set histories; /* of all sizes, whatever the range */
};

/*
 * Reads all leaks of the file at @path whose size is in @range (NULL: all). Returns 0 and a set for
 * leak_set_deinit(), or a negative errno after reporting it.
 */
int leak_set_init(struct leak_set *set, const char *path, const struct size_range *range);

/* Frees what @set holds. */
void leak_set_deinit(struct leak_set *set);

/*
 * Fills @ret with the at most @max sizes that most leaks have, at least two each; the most frequent
 * first. Returns 0 and their number in *@ret_nr, or -ENOMEM after reporting it.
 */
int leak_set_recurring_sizes(const struct leak_set *set, struct recurring_size *ret, size_t max,
			     size_t *ret_nr);

#endif
