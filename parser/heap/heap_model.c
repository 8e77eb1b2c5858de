/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/heap/heap_model.h"

#include "parser/heap/heap_table.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>

#define WORTH_COMPACTING  1024u
#define WORTH_PREFETCHING 4096u /* With fewer slots, the entries fit into a first-level cache. */
#define WORTH_TRIMMING	  256u	/* in pages of entries: 1.2 MB */

static struct heap *create_at(struct shared_memory *memory, uint64_t depth)
{
	struct heap *heap = calloc(1, sizeof(*heap));

	if (!heap)
		return NULL;
	heap->free_entry = heap->free_release = heap->oldest = heap->newest = NO_INDEX;
	heap->depth = depth;
	heap->memory = memory;
	heap->all_young = true;
	heap->seed = hash_seed();
	return heap;
}

struct heap *heap_create(struct shared_memory *memory)
{
	return create_at(memory, 0);
}

static void clear_pages(struct heap *heap)
{
	shared_pages_clear(&heap->slots, heap->memory);
	shared_pages_clear(&heap->entries, heap->memory);
	shared_pages_clear(&heap->releases, heap->memory);
}

void heap_destroy(struct heap *heap)
{
	if (!heap)
		return;
	clear_pages(heap);
	free(heap->young);
	free(heap);
}

static bool is_memory(const struct heap_block *block)
{
	return !block->allocated.schema || !probe_schema_is_resource(block->allocated.schema);
}

#define FIRST_YOUNG 64

static void list_young(struct heap *heap, struct entry *entry, uint32_t index)
{
	if (heap->nr_young == heap->max_young) {
		uint32_t max = heap->max_young ? 2 * heap->max_young : FIRST_YOUNG;
		uint32_t *young = reallocarray(heap->young, max, sizeof(*young));

		if (!young) {
			heap->all_young = true;
			return;
		}
		heap->young = young;
		heap->max_young = max;
	}
	heap->young[heap->nr_young++] = index;
	entry->is_young = true;
}

static void hold(struct heap *heap, struct entry *entry, uint32_t index,
		 const struct heap_block *block)
{
	if (!heap->all_young && !entry->is_young)
		list_young(heap, entry, index);
	entry->block = *block;
	entry->state = ENTRY_HELD;
	heap->nr_held++;
	if (!is_memory(block))
		return;
	heap->held.blocks++;
	heap->held.bytes += block->size_bytes;
	heap->held.all_blocks++;
	heap->held.all_bytes += block->size_bytes;
	if (heap->held.bytes > heap->held.most_bytes)
		heap->held.most_bytes = heap->held.bytes;
}

static void unhold(struct heap *heap, struct entry *entry)
{
	entry->state = ENTRY_FREE;
	heap->nr_held--;
	if (!is_memory(&entry->block))
		return;
	heap->held.blocks--;
	heap->held.bytes -= entry->block.size_bytes;
}

static int make_release(struct heap *heap, uint32_t *ret)
{
	if (heap->free_release != NO_INDEX) {
		*ret = heap->free_release;
		heap->free_release = release_at(heap, *ret)->next;
		return 0;
	}
	if (heap->nr_releases_made == heap->releases.nr * RELEASE_PAGE &&
	    shared_pages_add(&heap->releases, RELEASE_PAGE * sizeof(struct release), heap->depth,
			     heap->memory))
		return -ENOMEM;
	*ret = heap->nr_releases_made++;
	return 0;
}

/* Makes @entry, which is not held any more, the newest release. */
static int append_release(struct heap *heap, struct entry *entry, uint32_t index,
			  const struct heap_op *op)
{
	struct release *release, *newest;
	uint32_t number;

	if (make_release(heap, &number))
		return -ENOMEM;
	release = own_release(heap, number);
	if (!release)
		return -ENOMEM;
	*release =
		(struct release){.op = *op, .entry = index, .prev = heap->newest, .next = NO_INDEX};
	if (heap->newest != NO_INDEX) {
		newest = own_release(heap, heap->newest);
		if (!newest)
			return -ENOMEM;
		newest->next = number;
	} else {
		heap->oldest = number;
	}
	heap->newest = number;
	heap->nr_releases++;
	entry->state = ENTRY_RELEASED;
	entry->link = number;
	return 0;
}

static int unlink_release(struct heap *heap, struct entry *entry)
{
	struct release *release = own_release(heap, entry->link), *neighbour;

	if (!release)
		return -ENOMEM;
	if (release->prev != NO_INDEX) {
		neighbour = own_release(heap, release->prev);
		if (!neighbour)
			return -ENOMEM;
		neighbour->next = release->next;
	} else {
		heap->oldest = release->next;
	}
	if (release->next != NO_INDEX) {
		neighbour = own_release(heap, release->next);
		if (!neighbour)
			return -ENOMEM;
		neighbour->prev = release->prev;
	} else {
		heap->newest = release->prev;
	}
	release->next = heap->free_release;
	heap->free_release = entry->link;
	heap->nr_releases--;
	entry->state = ENTRY_FREE;
	return 0;
}

static int forget_oldest_release(struct heap *heap)
{
	struct entry *entry = own_entry(heap, release_at(heap, heap->oldest)->entry);

	if (!entry || unlink_release(heap, entry))
		return -ENOMEM;
	return heap_delete_entry(heap, entry->block.address);
}

struct heap *heap_copy(struct heap *heap)
{
	struct heap *copy = malloc(sizeof(*copy));

	if (!copy)
		return NULL;
	*copy = *heap;
	copy->slots = copy->entries = copy->releases = (struct shared_pages){0};
	copy->young = NULL;
	copy->nr_young = copy->max_young = 0;
	copy->all_young = true;
	copy->depth++;
	copy->is_shared = heap->is_shared = true;
	if (shared_pages_copy(&copy->slots, &heap->slots, heap->memory) ||
	    shared_pages_copy(&copy->entries, &heap->entries, heap->memory) ||
	    shared_pages_copy(&copy->releases, &heap->releases, heap->memory)) {
		heap_destroy(copy);
		return NULL;
	}
	return copy;
}

int heap_alloc(struct heap *heap, const struct heap_block *block, struct heap_block *ret_previous)
{
	uint32_t index = heap_find_entry(heap, block->address);
	int result = HEAP_OK;
	struct entry *entry;

	entry = index == NO_INDEX ? heap_add_entry(heap, block, &index) : own_entry(heap, index);
	if (!entry)
		return -ENOMEM;
	if (entry->state == ENTRY_HELD) {
		*ret_previous = entry->block;
		unhold(heap, entry);
		result = HEAP_STILL_HELD;
	} else if (entry->state == ENTRY_RELEASED && unlink_release(heap, entry)) {
		return -ENOMEM;
	}
	hold(heap, entry, index, block);
	return result;
}

int heap_release(struct heap *heap, uint64_t address, const struct heap_op *op,
		 struct heap_block *ret_block, struct heap_op *ret_released)
{
	uint32_t index = heap_find_entry(heap, address);
	struct entry *entry;

	if (index == NO_INDEX)
		return HEAP_UNKNOWN;
	entry = own_entry(heap, index);
	if (!entry)
		return -ENOMEM;
	*ret_block = entry->block;
	if (entry->state == ENTRY_RELEASED) {
		*ret_released = release_at(heap, entry->link)->op;
		return HEAP_DOUBLE_FREE;
	}
	unhold(heap, entry);
	if (append_release(heap, entry, index, op) ||
	    (heap->nr_releases > HEAP_MAX_RELEASES && forget_oldest_release(heap)))
		return -ENOMEM;
	return HEAP_OK;
}

int heap_unrelease(struct heap *heap, const struct heap_block *block, uint64_t sequence)
{
	uint32_t index = heap_find_entry(heap, block->address);
	struct entry *entry;

	/* The entry is missing if newer releases have displaced it. */
	entry = index == NO_INDEX ? heap_add_entry(heap, block, &index) : own_entry(heap, index);
	if (!entry)
		return -ENOMEM;
	if (entry->state == ENTRY_HELD || (entry->state == ENTRY_RELEASED &&
					   release_at(heap, entry->link)->op.sequence != sequence))
		return 0;
	if (entry->state == ENTRY_RELEASED && unlink_release(heap, entry))
		return -ENOMEM;
	hold(heap, entry, index, block);
	return 1;
}

/* Finds the entry of a held block by its allocation. An inherited block is not provisional. */
static struct entry *find_allocated_by(struct heap *heap, uint64_t address, uint64_t sequence)
{
	uint32_t index = heap_find_entry(heap, address);
	const struct entry *entry = index == NO_INDEX ? NULL : entry_at(heap, index);

	if (!entry || entry->state != ENTRY_HELD || entry->block.allocated.sequence != sequence)
		return NULL;
	return own_entry(heap, index);
}

bool heap_withdraw(struct heap *heap, uint64_t address, uint64_t sequence,
		   struct heap_block *ret_block)
{
	struct entry *entry = find_allocated_by(heap, address, sequence);

	if (!entry)
		return false;
	*ret_block = entry->block;
	unhold(heap, entry);
	return heap_delete_entry(heap, address) == 0;
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

/* The block of a held entry, with its true flags. */
static const struct heap_block *show_block(const struct heap *heap, uint32_t index,
					   struct heap_block *inherited)
{
	const struct heap_block *block = &entry_at(heap, index)->block;

	if (!is_inherited(heap, index))
		return block;
	*inherited = *block;
	inherited->inherited = true;
	inherited->provisional = false;
	return inherited;
}

const struct heap_block *heap_find(struct heap *heap, uint64_t address)
{
	uint32_t index = heap_find_entry(heap, address);

	if (index == NO_INDEX || entry_at(heap, index)->state != ENTRY_HELD)
		return NULL;
	return show_block(heap, index, &heap->found);
}

bool heap_prefetch(const struct heap *heap, uint64_t address, bool sooner)
{
	const struct slot *slot;

	if (heap->nr_slots < WORTH_PREFETCHING)
		return false;
	slot = slot_at(heap, tag_of(heap, address) & (heap->nr_slots - 1));
	if (!sooner) {
		__builtin_prefetch(slot);
	} else if (slot->entry != NO_INDEX) {
		const struct entry *entry = entry_at(heap, slot->entry);

		__builtin_prefetch(entry, 1);
		__builtin_prefetch((const char *)(entry + 1) - 1, 1);
	}
	return true;
}

const struct heap_op *heap_find_release(const struct heap *heap, uint64_t address)
{
	uint32_t index = heap_find_entry(heap, address);
	const struct entry *entry = index == NO_INDEX ? NULL : entry_at(heap, index);

	return entry && entry->state == ENTRY_RELEASED ? &release_at(heap, entry->link)->op : NULL;
}

/*
 * Moves a heap's own held blocks to a new heap with as few pages as possible, which releases the
 * pages that it shares with other heaps.
 */
static int compact(struct heap *heap)
{
	struct heap *copy = create_at(heap->memory, heap->depth);
	struct heap old;

	for (uint32_t i = 0; copy && i < heap->nr_made; i++) {
		const struct entry *entry = entry_at(heap, i);
		struct entry *added;
		uint32_t index;

		if (is_inherited(heap, i)) {
			i |= ENTRY_PAGE - 1; /* skip the page: all of it is inherited */
			continue;
		}
		if (entry->state != ENTRY_HELD || entry->block.inherited)
			continue;
		added = heap_add_entry(copy, &entry->block, &index);
		if (!added) {
			heap_destroy(copy);
			return -ENOMEM;
		}
		hold(copy, added, index, &entry->block);
	}
	if (!copy)
		return -ENOMEM;
	old = *heap;
	*heap = *copy;
	*copy = old;
	heap_destroy(copy);
	return 0;
}

int heap_bury(struct heap *heap)
{
	int err = 0;

	/* Visits only the heap's own pages, and copies none. */
	if (heap->is_shared)
		return compact(heap);
	while (!err && heap->oldest != NO_INDEX)
		err = forget_oldest_release(heap);
	for (uint32_t i = 0; !err && i < heap->nr_made; i++) {
		const struct entry *entry = entry_at(heap, i);

		if (entry->state != ENTRY_HELD || !entry->block.inherited)
			continue;
		unhold(heap, own_entry(heap, i));
		err = heap_delete_entry(heap, entry->block.address);
	}
	/* Running out of memory does no harm here. */
	if (!err && heap->nr_made > WORTH_COMPACTING && heap->nr_entries < heap->nr_made / 2)
		compact(heap);
	return err;
}

struct held_memory heap_held_memory(const struct heap *heap)
{
	return heap->held;
}

size_t heap_size_bytes(const struct heap *heap)
{
	return shared_pages_bytes(&heap->slots) + shared_pages_bytes(&heap->entries) +
	       shared_pages_bytes(&heap->releases);
}

size_t heap_nr_blocks(const struct heap *heap)
{
	return heap->nr_held;
}

int heap_for_each(const struct heap *heap, int (*visit)(void *context, const struct heap_block *b),
		  void *context)
{
	struct heap_block inherited;

	for (uint32_t i = 0; i < heap->nr_made; i++) {
		int result = 0;

		if (entry_at(heap, i)->state == ENTRY_HELD)
			result = visit(context, show_block(heap, i, &inherited));
		if (result)
			return result;
	}
	return 0;
}

static void visit_own_entry(const struct entry *entry,
			    void (*visit)(void *context, const struct heap_block *b), void *context)
{
	if (entry->state == ENTRY_HELD && !entry->block.inherited)
		visit(context, &entry->block);
}

/* Calls @visit for the held blocks of page @page that were not inherited. */
static void visit_own_page(const struct heap *heap, uint32_t page,
			   void (*visit)(void *context, const struct heap_block *b), void *context)
{
	uint32_t first = page * ENTRY_PAGE;

	if (first >= heap->nr_made || is_inherited(heap, first))
		return;
	for (uint32_t i = first; i < first + ENTRY_PAGE && i < heap->nr_made; i++)
		visit_own_entry(entry_at(heap, i), visit, context);
}

void heap_for_each_own(const struct heap *heap,
		       void (*visit)(void *context, const struct heap_block *b), void *context)
{
	for (uint32_t page = 0; page < heap->entries.nr; page++)
		visit_own_page(heap, page, visit, context);
}

void heap_for_each_young(struct heap *heap,
			 void (*visit)(void *context, const struct heap_block *b), void *context)
{
	/* The pages are the heap's own; a child that shares one takes all in it as inherited. */
	for (uint32_t i = 0; i < heap->nr_young; i++) {
		uint32_t index = heap->young[i];
		struct entry *entry = entry_in(entry_page(heap, index), index);

		entry->is_young = false;
		if (!heap->all_young)
			visit_own_entry(entry, visit, context);
	}
	heap->nr_young = 0;
	/* If a visit compacts the heap, its blocks move, and all are young again. */
	while (heap->all_young) {
		heap->all_young = false;
		heap_for_each_own(heap, visit, context);
	}
}

void heap_drain(struct heap *heap, void (*visit)(void *context, const struct heap_block *b),
		void *context)
{
	shared_pages_clear(&heap->slots, heap->memory);
	for (uint32_t page = heap->entries.nr; page-- > 0;) {
		visit_own_page(heap, page, visit, context);
		shared_pages_drop(&heap->entries, page, heap->memory);
		/* Trims whenever the number of pages has halved. */
		if (page >= WORTH_TRIMMING && (page & (page - 1)) == 0)
			malloc_trim(0);
	}
	clear_pages(heap);
	free(heap->young);
	*heap = (struct heap){
		.all_young = true,
		.depth = heap->depth,
		.memory = heap->memory,
		.seed = heap->seed,
		.free_entry = NO_INDEX,
		.free_release = NO_INDEX,
		.oldest = NO_INDEX,
		.newest = NO_INDEX,
	};
}
