/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/analysis/reach.h"

#include <errno.h>
#include <stdlib.h>

/*
 * A chunk of glibc has at most this much more than what was asked for: its size is a multiple of
 * 16, the smallest has 24 bytes, and a rest of less than 32 is not split off.
 */
#define MAX_MORE_BYTES 56
#define PAGE_BYTES     4096 /* a chunk with a mapping of its own fills pages */

/* A block that is not held, or a part of a heap. */
struct reach_entry {
	pid_t pid;
	uint64_t address, size_bytes, stopped_ns;
	enum reach_class class;
};

struct reach_list {
	struct reach_entry *entries;
	size_t nr, capacity;
};

struct reach {
	struct reach_list blocks, heaps;
	bool is_sorted;
};

struct reach *reach_create(void)
{
	return calloc(1, sizeof(struct reach));
}

void reach_destroy(struct reach *reach)
{
	if (!reach)
		return;
	free(reach->blocks.entries);
	free(reach->heaps.entries);
	free(reach);
}

int reach_add(struct reach *reach, const struct perf_sample *sample)
{
	const struct reach_entry entry = {
		.pid = sample->origin.pid,
		.address = sample->args[REACH_ADDRESS],
		.size_bytes = sample->args[REACH_BYTES],
		.stopped_ns = sample->args[REACH_STOPPED],
		.class = (enum reach_class)sample->mark_number,
	};
	struct reach_list *list = entry.class == REACH_HEAP ? &reach->heaps : &reach->blocks;

	if (sample->mark_number > REACH_HEAP || entry.class == REACH_HELD ||
	    entry.size_bytes > UINT64_MAX - entry.address)
		return 0;
	if (list->nr == list->capacity) {
		size_t capacity = list->capacity ? 2 * list->capacity : 256;
		struct reach_entry *grown = reallocarray(list->entries, capacity, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		list->entries = grown;
		list->capacity = capacity;
	}
	list->entries[list->nr++] = entry;
	reach->is_sorted = false;
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct reach_entry *x = a, *y = b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return (x->stopped_ns > y->stopped_ns) - (x->stopped_ns < y->stopped_ns);
}

/* The last entry of @pid at or below @address, or NULL. */
static const struct reach_entry *find(const struct reach_list *list, pid_t pid, uint64_t address)
{
	const struct reach_entry key = {.pid = pid, .address = address, .stopped_ns = UINT64_MAX};
	size_t low = 0, high = list->nr;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (compare(&list->entries[middle], &key) <= 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low > 0 && list->entries[low - 1].pid == pid ? &list->entries[low - 1] : NULL;
}

/* The scan shows a block's usable size, which is a little more than what was asked for. */
static bool fits(const struct reach_entry *entry, const struct heap_block *block)
{
	uint64_t more = entry->size_bytes - block->size_bytes;

	return !block->size_known ||
	       (entry->size_bytes >= block->size_bytes &&
		(more < MAX_MORE_BYTES ||
		 (entry->size_bytes >= 16 * PAGE_BYTES && more < PAGE_BYTES + MAX_MORE_BYTES)));
}

enum reach_class reach_of(struct reach *reach, const struct heap_block *block)
{
	const struct reach_entry *heap, *entry;
	pid_t pid = block->allocated.pid;

	if (!reach->is_sorted) {
		struct reach_list *const lists[] = {&reach->blocks, &reach->heaps};

		for (size_t i = 0; i < 2; i++)
			if (lists[i]->nr)
				qsort(lists[i]->entries, lists[i]->nr, sizeof(*lists[i]->entries),
				      compare);
		reach->is_sorted = true;
	}
	heap = find(&reach->heaps, pid, block->address);
	if (!heap || block->address - heap->address >= heap->size_bytes ||
	    block->allocated.time_ns >= heap->stopped_ns || block->inherited ||
	    probe_schema_is_resource(block->allocated.schema))
		return REACH_NOT_SCANNED;
	entry = find(&reach->blocks, pid, block->address);
	if (!entry || entry->address != block->address)
		return REACH_HELD;
	return fits(entry, block) ? entry->class : REACH_NOT_SCANNED;
}

bool reach_has_any(const struct reach *reach)
{
	return reach->heaps.nr > 0;
}
