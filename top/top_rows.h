/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The rows of the view: one for each allocation stack, with what it holds, how that grows, and what
 * it has added since a mark. Pure: numbers in, an order out.
 */
#ifndef LEAKTOOLS_TOP_TOP_ROWS_H
#define LEAKTOOLS_TOP_TOP_ROWS_H

#include "parser/statistics/site_stats.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TOP_SECONDS 10 /* growth is that of the last ones */

enum top_order {
	TOP_BY_HELD,
	TOP_BY_GROWTH,
	TOP_BY_MARK, /* what was added since the mark */
	TOP_BY_BLOCKS,
	TOP_BY_ALLOCATIONS,
	TOP_NR_ORDERS,
};

struct top_row {
	uint32_t stack_id;
	uint64_t held_bytes, held_blocks;
	uint64_t allocations;
	int64_t bytes_per_s;
	int64_t since_mark; /* bytes */
	uint64_t marked_bytes;
	uint64_t held_then[TOP_SECONDS]; /* in a ring, with the moments of struct top_rows */
};

struct top_rows {
	struct top_row *rows; /* in the order of the sites, to which only some are added */
	size_t nr, max;
	uint64_t then_ns[TOP_SECONDS]; /* 0: no such moment yet */
	size_t next;		       /* of the moments, the oldest */
	uint64_t held_bytes, held_blocks;
	int64_t bytes_per_s;
	bool is_marked;
};

void top_rows_deinit(struct top_rows *rows);

/* Takes over what @sites are at @now_ns (CLOCK_MONOTONIC). Returns 0 or -ENOMEM. */
int top_rows_update(struct top_rows *rows, const struct site *sites, size_t nr, uint64_t now_ns);

/* From now on. */
void top_rows_mark(struct top_rows *rows);

/*
 * Those of the rows that @is_wanted (NULL: all),
 * as indices, the first of @order first; @ret has room for all. Returns how many.
 */
size_t top_rows_sort(const struct top_rows *rows, enum top_order order,
		     bool (*is_wanted)(void *context, size_t row), void *context, uint32_t *ret);

#endif
