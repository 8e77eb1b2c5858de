/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A set of rows of three numbers. Equal rows share one index, counted from 0 in the order of
 * insertion. For formats whose tables refer to each other.
 */
#ifndef LEAKTOOLS_REPORT_ROW_SET_H
#define LEAKTOOLS_REPORT_ROW_SET_H

#include <stddef.h>
#include <stdint.h>

#define ROW_NUMBERS 3

struct row {
	uint32_t of[ROW_NUMBERS];
};

/* Zero it before the first use. */
struct row_set {
	struct row *rows;
	size_t nr, max;
	uint32_t *slots; /* a row's index + 1; 0: free */
	size_t nr_slots; /* a power of two */
};

/* Stores the row's index in *@ret. Returns 0 or -ENOMEM. */
int row_set_add(struct row_set *set, struct row row, uint32_t *ret);
void row_set_deinit(struct row_set *set);

#endif
