/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Calls that leakrec has counted all the time, also between windows (leakrec:calls): how many calls
 * a second, and how many of those within windows allocated how much.
 *
 * All values are a file's, which may be made up. Memory is bounded: of a function there are
 * CALL_POINTS_MAX points of its history at most, evenly spaced; a function takes the place of the
 * one whose number is CALL_COUNTS_MAX less.
 */
#ifndef LEAKTOOLS_PARSER_CALL_COUNTS_H
#define LEAKTOOLS_PARSER_CALL_COUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define CALL_COUNTS_MAX 1024
#define CALL_POINTS_MAX 64

struct call_sample {
	uint32_t number; /* of the function, from 1 */
	pid_t pid;
	uint32_t call_id; /* where it calls (stack_store_has_call()) */
	uint64_t time_ns, since_ns;
	uint64_t all, observed, blocks; /* enum calls_value */
};

struct call_history {
	struct call_sample last;
	uint64_t spacing_ns; /* of the points but the last one */
	struct call_point {
		uint64_t time_ns, all;
	} points[CALL_POINTS_MAX];
	size_t nr;
};

/* Zero it before use. */
struct call_counts {
	struct call_history *of[CALL_COUNTS_MAX]; /* by number; NULL: none */
};

void call_counts_deinit(struct call_counts *counts);

/*
 * Adds the next sample in time order. @start_ns is when the recording began: calls that were
 * counted before are of an unknown time. Samples that cannot be true are ignored. A function that
 * is counted anew begins anew. Returns 0 or -ENOMEM.
 */
int call_counts_add(struct call_counts *counts, const struct call_sample *sample,
		    uint64_t start_ns);

/* True if the calls at @call_id of process @pid are counted. */
bool call_counts_has(const struct call_counts *counts, uint32_t call_id, pid_t pid);

/* The calls of all processes at one place. */
struct call_sum {
	double calls_per_s;
	double calls;		 /* counted in the time that was asked for */
	double observed, blocks; /* as in a sample, of all time */
};

/*
 * Sums up the calls at @call_id in @from_ns to @to_ns. Returns false if there is none, or if one of
 * the processes was counted for less than half of that time or not to its end.
 */
bool call_counts_sum(const struct call_counts *counts, uint32_t call_id, uint64_t from_ns,
		     uint64_t to_ns, struct call_sum *ret);

#endif
