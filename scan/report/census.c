/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "scan/report/census.h"

#include "common/scope.h"
#include "scan/threads/thread_team.h"

#include <errno.h>
#include <stdatomic.h>

#define PIECE_BLOCKS 16384u

/* An open-addressed table: nothing but a few loads for each block. Types are told by address. */
struct table {
	struct census_row *rows;
	size_t nr, capacity; /* a power of two */
	uint64_t seed;
} TEAM_ALIGNED;

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

/* Several threads count blocks, a piece after the other. */
struct counting {
	struct scan_report *report;
	struct table tables[TEAM_MAX_THREADS];
	_Atomic uint64_t next_piece;
	_Atomic int err;
};

static int count_block(struct counting *counting, struct table *table, struct type_cache *cache,
		       uint32_t nr, const struct heap_block_view *block)
{
	const struct lost_block *lost;
	struct census_row *row;
	const char *type;

	if (table->nr * 2 >= table->capacity && grow(table))
		return -ENOMEM;
	type = object_type_cached(&counting->report->types, cache, block);
	row = find_slot(table, block->size_bytes, type);
	table->nr += row->nr == 0;
	row->size_bytes = block->size_bytes;
	row->type = type;
	row->nr++;
	row->nr_lost += scan_class_of(counting->report->scan, nr, &lost) <= REACH_THROUGH;
	return 0;
}

static void count_pieces(void *context, unsigned thread)
{
	struct counting *counting = context;
	const struct heap *heap = &counting->report->scan->heap;
	struct type_cache cache = {0};
	uint64_t first;
	int err = 0;

	while (!err && (first = atomic_fetch_add(&counting->next_piece, 1) * PIECE_BLOCKS) <
			       heap->map.nr_blocks) {
		const struct heap_segment *segment = NULL;

		for (uint64_t i = first; i < first + PIECE_BLOCKS && i < heap->map.nr_blocks; i++) {
			struct heap_block_view view;
			uint64_t address;

			heap_map_block_near(&heap->map, (uint32_t)i, &segment, &address);
			heap_block_view_at(heap, (uint32_t)i, segment, address, &view);
			err = count_block(counting, &counting->tables[thread], &cache, (uint32_t)i,
					  &view);
			if (err)
				break;
		}
	}
	if (err)
		atomic_store(&counting->err, err);
}

/* All rows of @tables; a size and type that several threads have met has several. */
static int collect(struct census *census, const struct table tables[static TEAM_MAX_THREADS])
{
	size_t nr = 0;

	for (unsigned i = 0; i < TEAM_MAX_THREADS; i++)
		nr += tables[i].nr;
	census->rows = nr ? calloc(nr, sizeof(*census->rows)) : NULL;
	if (!census->rows)
		return nr ? -ENOMEM : 0;
	for (unsigned t = 0; t < TEAM_MAX_THREADS; t++)
		for (size_t i = 0; i < tables[t].capacity; i++)
			if (tables[t].rows[i].nr)
				census->rows[census->nr++] = tables[t].rows[i];
	return 0;
}

int census_init(struct census *ret, struct scan_report *report)
{
	struct counting counting = {.report = report};
	int err;

	*ret = (struct census){0};
	for (unsigned i = 0; i < TEAM_MAX_THREADS; i++)
		counting.tables[i].seed = hash_seed();
	thread_team_run(report->scan->marking.nr_threads, count_pieces, &counting);
	err = atomic_load(&counting.err);
	if (!err)
		err = collect(ret, counting.tables);
	for (unsigned i = 0; i < TEAM_MAX_THREADS; i++)
		free(counting.tables[i].rows);
	if (err || !ret->nr)
		return err;
	merge(ret);
	qsort(ret->rows, ret->nr, sizeof(*ret->rows), compare_bytes);
	return 0;
}

void census_deinit(struct census *census)
{
	free(census->rows);
	*census = (struct census){0};
}
