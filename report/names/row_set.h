/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Rows of three numbers, each kept once: equal rows get the same number, from 0 on in the order of
 * arrival. For formats with tables that refer to each other.
 */
#ifndef LEAKTOOLS_REPORT_ROW_SET_H
#define LEAKTOOLS_REPORT_ROW_SET_H

#include <stddef.h>
#include <stdint.h>

#define ROW_NUMBERS 3

struct row {
	uint32_t of[ROW_NUMBERS];
};

/* Zero it before use. */
struct row_set {
	struct row *rows;
	size_t nr, max;
	uint32_t *slots; /* a row's number + 1; 0: free */
	size_t nr_slots; /* a power of two */
};

/* Returns 0 or -ENOMEM. */
int row_set_add(struct row_set *set, struct row row, uint32_t *ret);
void row_set_deinit(struct row_set *set);

#endif
