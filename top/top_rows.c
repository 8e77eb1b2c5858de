/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "top/top_rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NS_PER_S 1000000000ULL

void top_rows_deinit(struct top_rows *rows)
{
	free(rows->rows);
	*rows = (struct top_rows){0};
}

static int reserve(struct top_rows *rows, size_t nr)
{
	size_t max = rows->max ? rows->max : 256;
	struct top_row *grown;

	while (max < nr)
		max *= 2;
	if (max == rows->max)
		return 0;
	grown = reallocarray(rows->rows, max, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	rows->rows = grown;
	rows->max = max;
	return 0;
}

/* A hostile recording may have any sizes: the difference wraps around. */
static int64_t difference(uint64_t a, uint64_t b)
{
	return (int64_t)(a - b);
}

static int64_t per_second(int64_t bytes, uint64_t ns)
{
	return ns ? (int64_t)((double)bytes * (double)NS_PER_S / (double)ns) : 0;
}

/* The oldest entry of the ring in use; if none is, the next to write. */
static size_t oldest_sample(const struct top_rows *rows)
{
	for (size_t i = 0; i < TOP_SECONDS; i++) {
		size_t at = (rows->next + i) % TOP_SECONDS;

		if (rows->then_ns[at])
			return at;
	}
	return rows->next;
}

static void update_row(struct top_row *row, const struct site *site)
{
	row->stack_id = site->stack_id;
	row->held_bytes = site_present_bytes(site);
	row->held_blocks = site_present_blocks(site);
	row->allocations = site->allocations;
	row->since_mark = difference(row->held_bytes, row->marked_bytes);
}

/* Stores the held bytes once a second. */
static void store_sample(struct top_rows *rows, uint64_t now_ns)
{
	size_t last = (rows->next + TOP_SECONDS - 1) % TOP_SECONDS;

	if (rows->then_ns[last] && now_ns - rows->then_ns[last] < NS_PER_S)
		return;
	rows->then_ns[rows->next] = now_ns;
	for (size_t i = 0; i < rows->nr; i++)
		rows->rows[i].held_then[rows->next] = rows->rows[i].held_bytes;
	rows->next = (rows->next + 1) % TOP_SECONDS;
}

int top_rows_update(struct top_rows *rows, const struct site *sites, size_t nr, uint64_t now_ns)
{
	size_t oldest = oldest_sample(rows);
	uint64_t ns = rows->then_ns[oldest] ? now_ns - rows->then_ns[oldest] : 0;

	if (nr > rows->nr) {
		if (reserve(rows, nr))
			return -ENOMEM;
		memset(rows->rows + rows->nr, 0, (nr - rows->nr) * sizeof(*rows->rows));
		rows->nr = nr;
	}
	rows->held_bytes = rows->held_blocks = 0;
	rows->bytes_per_s = 0;
	for (size_t i = 0; i < rows->nr; i++) {
		struct top_row *row = &rows->rows[i];

		update_row(row, &sites[i]);
		row->bytes_per_s =
			per_second(difference(row->held_bytes, row->held_then[oldest]), ns);
		rows->held_bytes += row->held_bytes;
		rows->held_blocks += row->held_blocks;
		rows->bytes_per_s += row->bytes_per_s;
	}
	store_sample(rows, now_ns);
	return 0;
}

enum top_order top_rows_next_order(const struct top_rows *rows, enum top_order order)
{
	order = (order + 1) % TOP_NR_ORDERS;
	return order == TOP_BY_MARK && !rows->is_marked ? order + 1 : order;
}

void top_rows_mark(struct top_rows *rows)
{
	rows->is_marked = true;
	for (size_t i = 0; i < rows->nr; i++) {
		rows->rows[i].marked_bytes = rows->rows[i].held_bytes;
		rows->rows[i].since_mark = 0;
	}
}

/* The sort key of a row. */
struct sort_key {
	double value;
	uint64_t held_bytes;
	uint32_t row;
};

static double value_of(const struct top_row *row, enum top_order order)
{
	switch (order) {
	case TOP_BY_GROWTH:
		return (double)row->bytes_per_s;
	case TOP_BY_MARK:
		return (double)row->since_mark;
	case TOP_BY_BLOCKS:
		return (double)row->held_blocks;
	case TOP_BY_ALLOCATIONS:
		return (double)row->allocations;
	default:
		return (double)row->held_bytes;
	}
}

/* Equal rows keep their order, so that they do not jump. */
static int compare_keys(const void *a, const void *b)
{
	const struct sort_key *x = a, *y = b;

	if (x->value != y->value)
		return x->value > y->value ? -1 : 1;
	if (x->held_bytes != y->held_bytes)
		return x->held_bytes > y->held_bytes ? -1 : 1;
	return x->row < y->row ? -1 : x->row > y->row;
}

size_t top_rows_sort(const struct top_rows *rows, enum top_order order,
		     bool (*is_wanted)(void *context, size_t row), void *context, uint32_t *ret)
{
	struct sort_key *keys = calloc(rows->nr + 1, sizeof(*keys));
	size_t nr = 0;

	for (size_t i = 0; keys && i < rows->nr; i++)
		if (!is_wanted || is_wanted(context, i))
			keys[nr++] = (struct sort_key){value_of(&rows->rows[i], order),
						       rows->rows[i].held_bytes, (uint32_t)i};
	if (keys)
		qsort(keys, nr, sizeof(*keys), compare_keys);
	for (size_t i = 0; i < nr; i++)
		ret[i] = keys[i].row;
	free(keys);
	return nr;
}
