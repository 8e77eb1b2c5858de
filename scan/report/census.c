/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "scan/report/census.h"

#include "common/scope.h"

#include <errno.h>

/* An open-addressed table: nothing but a few loads for each block. Types are told by address. */
struct table {
	struct census_row *rows;
	size_t nr, capacity; /* a power of two */
	uint64_t seed;
};

static struct census_row *find_slot(const struct table *table, uint64_t size_bytes,
				    const char *type)
{
	uint64_t key[2] = {size_bytes, (uintptr_t)type};
	size_t i = hash_words(key, 2, table->seed) & (table->capacity - 1);

	while (table->rows[i].nr &&
	       (table->rows[i].size_bytes != size_bytes || table->rows[i].type != type))
		i = (i + 1) & (table->capacity - 1);
	return &table->rows[i];
}

static int grow(struct table *table)
{
	struct table larger = {.capacity = table->capacity ? table->capacity * 2 : 1024,
			       .nr = table->nr,
			       .seed = table->seed};

	larger.rows = calloc(larger.capacity, sizeof(*larger.rows));
	if (!larger.rows)
		return -ENOMEM;
	for (size_t i = 0; i < table->capacity; i++)
		if (table->rows[i].nr)
			*find_slot(&larger, table->rows[i].size_bytes, table->rows[i].type) =
				table->rows[i];
	free(table->rows);
	*table = larger;
	return 0;
}

static int compare_keys(const void *a, const void *b)
{
	const struct census_row *x = a, *y = b;

	if (x->size_bytes != y->size_bytes)
		return x->size_bytes < y->size_bytes ? -1 : 1;
	return strcmp(x->type ? x->type : "", y->type ? y->type : "");
}

static int compare_bytes(const void *a, const void *b)
{
	const struct census_row *x = a, *y = b;
	uint64_t x_bytes = x->nr * x->size_bytes, y_bytes = y->nr * y->size_bytes;

	if (x_bytes != y_bytes)
		return x_bytes > y_bytes ? -1 : 1;
	return compare_keys(a, b);
}

/* A type that several files have, or with several tables of functions, has one name. */
static void merge(struct census *census)
{
	size_t kept = 0;

	qsort(census->rows, census->nr, sizeof(*census->rows), compare_keys);
	for (size_t i = 0; i < census->nr; i++) {
		struct census_row *row = &census->rows[i];

		if (kept && compare_keys(&census->rows[kept - 1], row) == 0) {
			census->rows[kept - 1].nr += row->nr;
			census->rows[kept - 1].nr_lost += row->nr_lost;
		} else {
			census->rows[kept++] = *row;
		}
	}
	census->nr = kept;
}

int census_init(struct census *ret, struct scan_report *report)
{
	const struct scan *scan = report->scan;
	struct table table = {.seed = hash_seed()};

	*ret = (struct census){0};
	for (uint32_t i = 0; i < scan->heap.map.nr_blocks; i++) {
		const struct lost_block *lost;
		struct heap_block_view view;
		struct census_row *row;
		const char *type;

		if (table.nr * 2 >= table.capacity && grow(&table)) {
			free(table.rows);
			return -ENOMEM;
		}
		heap_block_view(&scan->heap, i, &view);
		type = object_type(&report->types, &view);
		row = find_slot(&table, view.size_bytes, type);
		table.nr += row->nr == 0;
		row->size_bytes = view.size_bytes;
		row->type = type;
		row->nr++;
		row->nr_lost += scan_class_of(scan, i, &lost) <= REACH_THROUGH;
	}
	for (size_t i = 0; i < table.capacity; i++)
		if (table.rows[i].nr)
			table.rows[ret->nr++] = table.rows[i];
	ret->rows = table.rows;
	if (!ret->rows)
		return 0;
	merge(ret);
	qsort(ret->rows, ret->nr, sizeof(*ret->rows), compare_bytes);
	return 0;
}

void census_deinit(struct census *census)
{
	free(census->rows);
	*census = (struct census){0};
}
