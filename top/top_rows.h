/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The rows of the view: one per allocation stack, with what it holds, how fast that grows, and its
 * change since a mark. No I/O, no names.
 */
#ifndef LEAKTOOLS_TOP_TOP_ROWS_H
#define LEAKTOOLS_TOP_TOP_ROWS_H

#include "parser/statistics/held_bars.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TOP_SECONDS 10 /* growth is measured over so many */
#define TOP_BARS    8  /* of what a row held over the whole recording */

enum top_order {
	TOP_BY_HELD,
	TOP_BY_GROWTH,
	TOP_BY_MARK, /* change since the mark */
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
	uint16_t bars[TOP_BARS];	 /* of held_bars(); filled for rows on the screen */
	uint64_t held_then[TOP_SECONDS]; /* a ring, in step with top_rows.then_ns */
};

struct top_rows {
	struct top_row *rows; /* in the order of the sites; sites are only added */
	size_t nr, max;
	uint64_t then_ns[TOP_SECONDS]; /* CLOCK_MONOTONIC; 0: unused */
	size_t next;		       /* the entry to write next: the oldest */
	uint64_t held_bytes, held_blocks;
	int64_t bytes_per_s;
	bool is_marked;
};

void top_rows_deinit(struct top_rows *rows);

/* Updates the rows to the state of @sites at @now_ns, CLOCK_MONOTONIC. Returns 0 or -ENOMEM. */
int top_rows_update(struct top_rows *rows, const struct site *sites, size_t nr, uint64_t now_ns);

/* The order after @order. What was added since the mark is one only if there is a mark. */
enum top_order top_rows_next_order(const struct top_rows *rows, enum top_order order);

/* Sets the mark to the current state. */
void top_rows_mark(struct top_rows *rows);

/*
 * Stores the indices of all rows that @is_wanted accepts (NULL: all) in @ret, sorted by @order.
 * @ret has rows->nr entries. Returns the number of indices.
 */
size_t top_rows_sort(const struct top_rows *rows, enum top_order order,
		     bool (*is_wanted)(void *context, size_t row), void *context, uint32_t *ret);

#endif
