/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/heap_model.h"

#include <errno.h>
#include <stdlib.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>
#include <utlist.h>

/* What is known of one address: a held block, or the last one there and its release. */
struct entry {
	struct heap_block block;
	struct heap_op released; /* meaningless while held */
	bool held;
	struct entry *prev, *next; /* in heap->releases, while not held */
	UT_hash_handle hh;
};

struct heap {
	struct entry *entries;	/* by block.address */
	struct entry *releases; /* oldest first */
	size_t nr_held, nr_releases;
	uint64_t held_bytes; /* wraps on absurd sizes, and back on their release */
};

struct heap *heap_create(void)
{
	return calloc(1, sizeof(struct heap));
}

void heap_destroy(struct heap *heap)
{
	struct entry *entry, *next;

	if (!heap)
		return;
	HASH_ITER (hh, heap->entries, entry, next) {
		HASH_DEL(heap->entries, entry);
		free(entry);
	}
	free(heap);
}

static struct entry *find_entry(const struct heap *heap, uint64_t address)
{
	struct entry *entry;

	HASH_FIND(hh, heap->entries, &address, sizeof(address), entry);
	return entry;
}

/* A new entry, neither held nor among the releases; NULL: out of memory. */
static struct entry *add_entry(struct heap *heap, const struct heap_block *block)
{
	struct entry *entry = calloc(1, sizeof(*entry));

	if (!entry)
		return NULL;
	entry->block = *block;
	HASH_ADD(hh, heap->entries, block.address, sizeof(entry->block.address), entry);
	if (!entry->hh.tbl) { /* uthash's sign that it could not grow */
		free(entry);
		return NULL;
	}
	return entry;
}

static void hold(struct heap *heap, struct entry *entry, const struct heap_block *block)
{
	entry->block = *block;
	entry->held = true;
	heap->nr_held++;
	heap->held_bytes += block->size_bytes;
}

static void unhold(struct heap *heap, struct entry *entry)
{
	entry->held = false;
	heap->nr_held--;
	heap->held_bytes -= entry->block.size_bytes;
}

static void append_release(struct heap *heap, struct entry *entry)
{
	DL_APPEND(heap->releases, entry);
	heap->nr_releases++;
}

static void unlink_release(struct heap *heap, struct entry *entry)
{
	DL_DELETE(heap->releases, entry);
	heap->nr_releases--;
}

static void delete_entry(struct heap *heap, struct entry *entry)
{
	HASH_DEL(heap->entries, entry); // NOLINT(clang-analyzer-core.NullDereference): it has one
	free(entry);
}

static void forget_release(struct heap *heap, struct entry *entry)
{
	unlink_release(heap, entry);
	delete_entry(heap, entry);
}

struct heap *heap_copy(const struct heap *heap)
{
	struct heap *copy = heap_create();

	if (!copy)
		return NULL;
	for (struct entry *entry = heap->entries; entry; entry = entry->hh.next) {
		struct heap_block block = entry->block;
		struct entry *added;

		if (!entry->held)
			continue;
		block.inherited = true;
		block.provisional = false;
		added = add_entry(copy, &block);
		if (!added)
			goto fail;
		hold(copy, added, &block);
	}
	/* Apart, to keep the order in which they will be forgotten. */
	for (struct entry *entry = heap->releases; entry; entry = entry->next) {
		struct entry *added = add_entry(copy, &entry->block);

		if (!added)
			goto fail;
		added->block.inherited = true;
		added->released = entry->released;
		append_release(copy, added);
	}
	return copy;

fail:
	heap_destroy(copy);
	return NULL;
}

int heap_alloc(struct heap *heap, const struct heap_block *block, struct heap_block *ret_previous)
{
	struct entry *entry = find_entry(heap, block->address);
	int result = HEAP_OK;

	if (!entry) {
		entry = add_entry(heap, block);
		if (!entry)
			return -ENOMEM;
	} else if (entry->held) {
		*ret_previous = entry->block;
		unhold(heap, entry);
		result = HEAP_STILL_HELD;
	} else {
		unlink_release(heap, entry);
	}
	hold(heap, entry, block);
	return result;
}

int heap_release(struct heap *heap, uint64_t address, const struct heap_op *op,
		 struct heap_block *ret_block, struct heap_op *ret_released)
{
	struct entry *entry = find_entry(heap, address);

	if (!entry)
		return HEAP_UNKNOWN;
	*ret_block = entry->block;
	if (!entry->held) {
		*ret_released = entry->released;
		return HEAP_DOUBLE_FREE;
	}
	unhold(heap, entry);
	entry->released = *op;
	append_release(heap, entry);
	if (heap->nr_releases > HEAP_MAX_RELEASES)
		forget_release(heap, heap->releases);
	return HEAP_OK;
}

int heap_unrelease(struct heap *heap, const struct heap_block *block, uint64_t sequence)
{
	struct entry *entry = find_entry(heap, block->address);

	if (!entry) { /* forgotten among so many releases since */
		entry = add_entry(heap, block);
		if (!entry)
			return -ENOMEM;
	} else if (entry->held || entry->released.sequence != sequence) {
		return 0;
	} else {
		unlink_release(heap, entry);
	}
	hold(heap, entry, block);
	return 1;
}

static struct entry *find_allocated_by(const struct heap *heap, uint64_t address, uint64_t sequence)
{
	struct entry *entry = find_entry(heap, address);

	if (!entry || !entry->held || entry->block.allocated.sequence != sequence)
		return NULL;
	return entry;
}

bool heap_withdraw(struct heap *heap, uint64_t address, uint64_t sequence,
		   struct heap_block *ret_block)
{
	struct entry *entry = find_allocated_by(heap, address, sequence);

	if (!entry)
		return false;
	*ret_block = entry->block;
	unhold(heap, entry);
	delete_entry(heap, entry);
	return true;
}

bool heap_settle(struct heap *heap, uint64_t address, uint64_t sequence,
		 struct heap_block *ret_block)
{
	struct entry *entry = find_allocated_by(heap, address, sequence);

	if (!entry || !entry->block.provisional)
		return false;
	entry->block.provisional = false;
	*ret_block = entry->block;
	return true;
}

const struct heap_block *heap_find(const struct heap *heap, uint64_t address)
{
	const struct entry *entry = find_entry(heap, address);

	return entry && entry->held ? &entry->block : NULL;
}

const struct heap_op *heap_find_release(const struct heap *heap, uint64_t address)
{
	const struct entry *entry = find_entry(heap, address);

	return entry && !entry->held ? &entry->released : NULL;
}

void heap_bury(struct heap *heap)
{
	struct entry *entry, *next;

	while (heap->releases)
		forget_release(heap, heap->releases);
	HASH_ITER (hh, heap->entries, entry, next) {
		if (!entry->block.inherited)
			continue;
		unhold(heap, entry);
		delete_entry(heap, entry);
	}
}

size_t heap_nr_blocks(const struct heap *heap)
{
	return heap->nr_held;
}

size_t heap_nr_releases(const struct heap *heap)
{
	return heap->nr_releases;
}

uint64_t heap_held_bytes(const struct heap *heap)
{
	return heap->held_bytes;
}

int heap_for_each(const struct heap *heap, int (*visit)(void *context, const struct heap_block *b),
		  void *context)
{
	for (const struct entry *entry = heap->entries; entry; entry = entry->hh.next) {
		int result = entry->held ? visit(context, &entry->block) : 0;

		if (result)
			return result;
	}
	return 0;
}
