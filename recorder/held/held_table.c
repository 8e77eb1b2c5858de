/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/held/held_table.h"

#include "common/hash.h"

#include <stdlib.h>

#define FIRST_ENTRIES 64

void held_table_deinit(struct held_table *table)
{
	free(table->entries);
	*table = (struct held_table){0};
}

static size_t home_of(const struct held_table *table, uint64_t address)
{
	return hash_words(&address, 1, table->seed) & (table->nr_entries - 1);
}

/* Where the block at @address is, or where it would be. The table must have a free entry. */
static size_t find_entry(const struct held_table *table, uint64_t address)
{
	size_t i = home_of(table, address);

	while (table->entries[i].address && table->entries[i].address != address)
		i = (i + 1) & (table->nr_entries - 1);
	return i;
}

struct held_block *held_table_find(const struct held_table *table, uint64_t address)
{
	struct held_block *entry =
		table->nr_entries ? &table->entries[find_entry(table, address)] : NULL;

	return entry && entry->address ? entry : NULL;
}

/* Doubles the table. */
static bool grow(struct held_table *table)
{
	struct held_table larger = {
		.nr = table->nr,
		.seed = table->nr_entries ? table->seed : hash_seed(),
		.nr_entries = table->nr_entries ? 2 * table->nr_entries : FIRST_ENTRIES,
	};

	larger.entries = calloc(larger.nr_entries, sizeof(*larger.entries));
	if (!larger.entries)
		return false;
	for (size_t i = 0; i < table->nr_entries; i++)
		if (table->entries[i].address)
			larger.entries[find_entry(&larger, table->entries[i].address)] =
				table->entries[i];
	free(table->entries);
	*table = larger;
	return true;
}

bool held_table_put(struct held_table *table, const struct held_block *block)
{
	struct held_block *entry;

	if (table->nr >= table->nr_entries / 4 * 3 && !grow(table))
		return false;
	entry = &table->entries[find_entry(table, block->address)];
	table->nr += !entry->address;
	*entry = *block;
	return true;
}

bool held_table_take(struct held_table *table, uint64_t address, struct held_block *ret)
{
	const size_t mask = table->nr_entries - 1;
	size_t hole, i;

	if (!table->nr_entries)
		return false;
	i = hole = find_entry(table, address);
	if (!table->entries[hole].address)
		return false;
	*ret = table->entries[hole];
	table->nr--;
	/* Moves up what was put behind because this entry was taken. */
	for (;;) {
		size_t home;

		i = (i + 1) & mask;
		if (!table->entries[i].address)
			break;
		home = home_of(table, table->entries[i].address);
		if (((i - home) & mask) < ((i - hole) & mask))
			continue;
		table->entries[hole] = table->entries[i];
		hole = i;
	}
	table->entries[hole].address = 0;
	return true;
}
