/* SPDX-License-Identifier: GPL-2.0-or-later */
/* When the suspect blocks of sites were allocated, and whether two such series belong together. */
#ifndef LEAKTOOLS_PARSER_CAUSE_TIMES_H
#define LEAKTOOLS_PARSER_CAUSE_TIMES_H

#include "parser/causes/cause_bags.h"

#define CAUSE_TIMES_MIN 10 /* fewer could come together by chance */

/* In order, after cause_times_sort(). */
struct cause_times {
	uint64_t *ns;
	size_t nr;
};

/* Appends the times of a member. @times->ns must have room for its suspect blocks. */
void cause_times_add(const struct cause_finder *finder, struct cause_times *times, size_t member);
void cause_times_sort(struct cause_times *times);

/* The greatest distance between the two empirical distributions (Kolmogorov and Smirnov). */
double cause_times_distance(const struct cause_times *a, const struct cause_times *b);

/* True if there is a whole number of the one's blocks for each of the other's. Neither is 0. */
bool cause_times_are_multiples(size_t nr, size_t nr_other);
/* True if both are spread alike over the recording. Neither is empty. */
bool cause_times_are_alike(const struct cause_times *a, const struct cause_times *b);

#endif
