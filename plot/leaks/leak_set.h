/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Loads a `leaks` file for plots: a point per leak, grouped by cause and verdict, and recurring
 * sizes. A cause is one stack, or several that leakparse judged together.
 */
#ifndef LEAKTOOLS_PLOT_LEAK_SET_H
#define LEAKTOOLS_PLOT_LEAK_SET_H

#include "common/hash.h"
#include "common/size_range.h"
#include "plot/labels/plot_colours.h"
#include "plot/labels/stack_label.h"
#include "plot/leaks/history_set.h"
#include "plot/leaks/leaks_reader.h"

/* Process names kept for the title. */
#define LEAK_SET_NAMES_MAX 3
/* Groups with a rank have a colour and a line in the legend. */
#define LEAK_SET_RANKS PLOT_RANKS

/* The leaks of one stack, or of one cause of several; there may be none. */
struct leak_group {
	uint32_t number;	  /* of the stack or the cause */
	struct leak_group *cause; /* that the stack is part of, or NULL */
	bool is_cause;
	bool has_history;   /* the cause */
	uint64_t nr_stacks; /* of the cause */
	struct stack_label label;
	uint64_t nr_leaks;
	uint64_t nr_lost;	    /* of them, by a scan */
	uint64_t nr_without_holder; /* or none was found: REACH_GROUP_NO_HOLDER */
	uint64_t nr_numbered;	    /* leaks that have their leak_point.nth */
	uint64_t total_bytes;
	uint64_t first_size_bytes;
	bool same_size; /* all leaks have first_size_bytes */
	int rank;	/* 0: holds most bytes; LEAK_SET_RANKS: no rank */
	UT_hash_handle hh;
};

struct leak_point {
	uint64_t size_bytes;
	uint64_t nth; /* if set.has_no_bytes: its number within its stack, in time order, from 1 */
	uint64_t time_ns;
	uint64_t event;
	uint64_t age_ns; /* at the end of the recording or of its process */
	enum plot_verdict verdict;
	struct leak_group *group; /* the cause's, if it is of one */
};

/* The leaks of one verdict. */
struct leak_verdict_sum {
	uint64_t nr_leaks;
	uint64_t nr_lost, nr_without_holder;
	uint64_t total_bytes;
};

/* A size that several leaks have. */
struct recurring_size {
	uint64_t size_bytes;
	uint64_t nr_leaks;
};

struct process_name;

struct leak_set {
	struct leak_point *points; /* in the file's order */
	size_t nr_points;
	size_t nr_points_allocated;
	uint64_t total_bytes; /* of the points; saturates */
	bool has_no_bytes;    /* all points are handles or empty blocks */
	uint64_t nr_outside_range;
	uint64_t nr_unknown_size;		   /* these have no point */
	struct leak_group *groups, *causes;	   /* by number */
	uint64_t seed;				   /* of all hashes */
	struct leak_group *ranked[LEAK_SET_RANKS]; /* NULL beyond the last group */
	struct leak_verdict_sum verdicts[PLOT_NR_VERDICTS];
	uint64_t nr_of_reach[REACH_NR_GROUPS]; /* points by what a scan said */
	struct process_name *processes;
	/*
	 * The names of the processes with leaks, in order of appearance; in older files those of
	 * their threads.
	 */
	char *names[LEAK_SET_NAMES_MAX];
	size_t nr_names;
	bool more_names;
	int32_t pid; /* of the first leak */
	bool several_pids;
	struct leaks_summary summary;
	struct history_set histories; /* of all sizes, regardless of the range */
};

/*
 * Reads the leaks of the file at @path with sizes in @range (NULL: all). Returns 0, or a negative
 * errno after reporting it.
 */
int leak_set_init(struct leak_set *set, const char *path, const struct size_range *range);

/* Frees the contents of @set. */
void leak_set_deinit(struct leak_set *set);

/*
 * Fills @ret with up to @max sizes that at least two leaks have, the most frequent first. Returns 0
 * and their number in *@ret_nr, or -ENOMEM after reporting it.
 */
int leak_set_recurring_sizes(const struct leak_set *set, struct recurring_size *ret, size_t max,
			     size_t *ret_nr);

#endif
