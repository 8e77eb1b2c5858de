/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/names/row_set.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MIN_SLOTS 1024

static size_t hash_row(const struct row *row)
{
	uint64_t hash = 0x9e3779b97f4a7c15u;

	for (int i = 0; i < ROW_NUMBERS; i++) {
		hash = (hash ^ row->of[i]) * 0xff51afd7ed558ccdu;
		hash ^= hash >> 32;
	}
	return (size_t)hash;
}

/* The slot that holds @row, or the one to put it in. */
static uint32_t *find_slot(const struct row_set *set, const struct row *row)
{
	size_t i = hash_row(row) & (set->nr_slots - 1);

	while (set->slots[i] && memcmp(&set->rows[set->slots[i] - 1], row, sizeof(*row)) != 0)
		i = (i + 1) & (set->nr_slots - 1);
	return &set->slots[i];
}

static int grow_slots(struct row_set *set)
{
	size_t nr_slots = set->nr_slots ? set->nr_slots * 2 : MIN_SLOTS;
	uint32_t *slots = calloc(nr_slots, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	free(set->slots);
	set->slots = slots;
	set->nr_slots = nr_slots;
	for (size_t i = 0; i < set->nr; i++)
		*find_slot(set, &set->rows[i]) = (uint32_t)i + 1;
	return 0;
}

static int grow_rows(struct row_set *set)
{
	size_t max = set->max ? set->max * 2 : MIN_SLOTS / 2;
	struct row *rows = max < UINT32_MAX ? realloc(set->rows, max * sizeof(*rows)) : NULL;

	if (!rows)
		return -ENOMEM;
	set->rows = rows;
	set->max = max;
	return 0;
}

int row_set_add(struct row_set *set, struct row row, uint32_t *ret)
{
	uint32_t *slot;
	int err = 0;

	if (set->nr * 2 >= set->nr_slots)
		err = grow_slots(set);
	if (!err && set->nr == set->max)
		err = grow_rows(set);
	if (err)
		return err;
	slot = find_slot(set, &row);
	if (!*slot) {
		set->rows[set->nr++] = row;
		*slot = (uint32_t)set->nr;
	}
	*ret = *slot - 1;
	return 0;
}

void row_set_deinit(struct row_set *set)
{
	free(set->rows);
	free(set->slots);
	*set = (struct row_set){0};
}
