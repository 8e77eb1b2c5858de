/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Entries lie in segments, each twice as large as the one before, and never move; a flat table with
 * linear probing finds them by address. A block costs an entry of 72 bytes and 11 to 22 bytes of
 * the table (test/bench/parser tells what becomes of that).
 */
#include "parser/heap_model.h"

#include "unwind/hash.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_SEGMENT	  16u /* entries */
#define MAX_SEGMENTS	  27
#define MAX_ENTRIES	  ((FIRST_SEGMENT << MAX_SEGMENTS) - FIRST_SEGMENT)
#define NO_INDEX	  UINT32_MAX
#define MIN_TABLE	  32u /* slots; a power of two */
#define FIRST_RELEASES	  64u
#define WORTH_COMPACTING  1024u
#define WORTH_PREFETCHING 4096u /* slots: their entries are more than a first-level cache holds */

enum entry_state { ENTRY_FREE, ENTRY_HELD, ENTRY_RELEASED };

/* What is known of one address: a held block, or the last one there and its release. */
struct entry {
	struct heap_block block;
	uint32_t state;
	uint32_t link; /* ENTRY_RELEASED: of heap->releases; ENTRY_FREE: the next free entry */
};

/* Who released an entry's block. */
struct release {
	struct heap_op op;
	uint32_t entry;
	uint32_t prev, next; /* older and newer; of unused ones only next */
};

struct slot {
	uint32_t tag;	/* of the address's hash; where it would like to be */
	uint32_t entry; /* NO_INDEX: the slot is empty */
};

struct heap {
	struct slot *slots;
	uint32_t nr_slots; /* a power of two, or 0 */
	uint32_t nr_entries;
	struct entry *segments[MAX_SEGMENTS];
	uint32_t nr_made; /* entries that were in use at some time: the first ones */
	uint32_t free_entry;

	struct release *releases;
	uint32_t nr_releases_made, max_releases, free_release;
	uint32_t oldest, newest;

	size_t nr_held, nr_releases;
	uint64_t held_bytes; /* wraps on absurd sizes, and back on their release */
	uint64_t seed;	     /* of the hash: colliding addresses can't be prepared */
};

struct heap *heap_create(void)
{
	struct heap *heap = calloc(1, sizeof(*heap));

	if (!heap)
		return NULL;
	heap->free_entry = heap->free_release = heap->oldest = heap->newest = NO_INDEX;
	heap->seed = hash_seed();
	return heap;
}

/* Leaves the heap empty, its seed apart. */
static void clear(struct heap *heap)
{
	uint64_t seed = heap->seed;

	free(heap->slots);
	free(heap->releases);
	for (size_t i = 0; i < MAX_SEGMENTS; i++)
		free(heap->segments[i]);
	*heap = (struct heap){
		.seed = seed,
		.free_entry = NO_INDEX,
		.free_release = NO_INDEX,
		.oldest = NO_INDEX,
		.newest = NO_INDEX,
	};
}

void heap_destroy(struct heap *heap)
{
	if (!heap)
		return;
	clear(heap);
	free(heap);
}

/* --- Entries --- */

static size_t segment_of(uint32_t index)
{
	return (size_t)(__builtin_clz(FIRST_SEGMENT) - __builtin_clz(index + FIRST_SEGMENT));
}

static uint32_t segment_entries(size_t segment)
{
	return FIRST_SEGMENT << segment;
}

/* The index of a segment's first entry. */
static uint32_t segment_start(size_t segment)
{
	return (FIRST_SEGMENT << segment) - FIRST_SEGMENT;
}

static struct entry *entry_at(const struct heap *heap, uint32_t index)
{
	size_t segment = segment_of(index);

	return &heap->segments[segment][index - segment_start(segment)];
}

static struct entry *make_entry(struct heap *heap, uint32_t *ret_index)
{
	uint32_t index = heap->free_entry;
	size_t segment;

	*ret_index = index;
	if (index != NO_INDEX) {
		struct entry *entry = entry_at(heap, index);

		heap->free_entry = entry->link;
		return entry;
	}
	if (heap->nr_made == MAX_ENTRIES)
		return NULL;
	index = *ret_index = heap->nr_made;
	segment = segment_of(index);
	if (!heap->segments[segment])
		heap->segments[segment] =
			malloc(segment_entries(segment) * sizeof(*heap->segments[segment]));
	if (!heap->segments[segment])
		return NULL;
	heap->nr_made++;
	return entry_at(heap, index);
}

static void give_back_entry(struct heap *heap, struct entry *entry, uint32_t index)
{
	entry->state = ENTRY_FREE;
	entry->link = heap->free_entry;
	heap->free_entry = index;
}

/* --- The table --- */

static uint32_t tag_of(const struct heap *heap, uint64_t address)
{
	return (uint32_t)hash_mix(address ^ heap->seed, 0xd6e8feb86659fd93);
}

/* The slot of @address; its index goes to *@ret_entry, NO_INDEX where it has none. */
static uint32_t find_slot(const struct heap *heap, uint64_t address, uint32_t *ret_entry)
{
	uint32_t mask = heap->nr_slots - 1, tag = tag_of(heap, address), at = tag & mask;

	for (*ret_entry = NO_INDEX; heap->nr_slots; at = (at + 1) & mask) {
		const struct slot *slot = &heap->slots[at];

		if (slot->entry == NO_INDEX)
			break;
		if (slot->tag != tag || entry_at(heap, slot->entry)->block.address != address)
			continue;
		*ret_entry = slot->entry;
		break;
	}
	return at;
}

static struct entry *find_entry(const struct heap *heap, uint64_t address)
{
	uint32_t index;

	find_slot(heap, address, &index);
	return index == NO_INDEX ? NULL : entry_at(heap, index);
}

static void put_slot(struct slot *slots, uint32_t mask, struct slot slot)
{
	uint32_t at = slot.tag & mask;

	while (slots[at].entry != NO_INDEX)
		at = (at + 1) & mask;
	slots[at] = slot;
}

/* Keeps the table at most three quarters full. */
static int grow_table(struct heap *heap)
{
	uint32_t nr = heap->nr_slots ? 2 * heap->nr_slots : MIN_TABLE;
	struct slot *slots;

	if ((uint64_t)heap->nr_entries + 1 <= (uint64_t)heap->nr_slots * 3 / 4)
		return 0;
	slots = malloc((size_t)nr * sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	memset(slots, 0xff, (size_t)nr * sizeof(*slots)); /* NO_INDEX */
	for (uint32_t i = 0; i < heap->nr_slots; i++)
		if (heap->slots[i].entry != NO_INDEX)
			put_slot(slots, nr - 1, heap->slots[i]);
	free(heap->slots);
	heap->slots = slots;
	heap->nr_slots = nr;
	return 0;
}

/* A new entry, neither held nor among the releases; NULL: out of memory. */
static struct entry *add_entry(struct heap *heap, const struct heap_block *block)
{
	struct entry *entry;
	uint32_t index;

	if (grow_table(heap))
		return NULL;
	entry = make_entry(heap, &index);
	if (!entry)
		return NULL;
	put_slot(heap->slots, heap->nr_slots - 1,
		 (struct slot){tag_of(heap, block->address), index});
	heap->nr_entries++;
	entry->block = *block;
	entry->state = ENTRY_FREE;
	entry->link = NO_INDEX;
	return entry;
}

/* Those behind the gap move up, as far as that takes none of them before its place. */
static void delete_entry(struct heap *heap, uint64_t address)
{
	uint32_t mask = heap->nr_slots - 1, index;
	uint32_t gap = find_slot(heap, address, &index), at = gap;

	if (index == NO_INDEX)
		return;
	give_back_entry(heap, entry_at(heap, index), index);
	heap->nr_entries--;
	for (;;) {
		at = (at + 1) & mask;
		if (heap->slots[at].entry == NO_INDEX)
			break;
		if (((at - heap->slots[at].tag) & mask) < ((at - gap) & mask))
			continue;
		heap->slots[gap] = heap->slots[at];
		gap = at;
	}
	heap->slots[gap].entry = NO_INDEX;
}

/* --- Held blocks and releases --- */

static void hold(struct heap *heap, struct entry *entry, const struct heap_block *block)
{
	entry->block = *block;
	entry->state = ENTRY_HELD;
	heap->nr_held++;
	heap->held_bytes += block->size_bytes;
}

static void unhold(struct heap *heap, struct entry *entry)
{
	entry->state = ENTRY_FREE;
	heap->nr_held--;
	heap->held_bytes -= entry->block.size_bytes;
}

static int make_release(struct heap *heap, uint32_t *ret)
{
	if (heap->free_release != NO_INDEX) {
		*ret = heap->free_release;
		heap->free_release = heap->releases[*ret].next;
		return 0;
	}
	if (heap->nr_releases_made == heap->max_releases) {
		uint32_t max = heap->max_releases ? 2 * heap->max_releases : FIRST_RELEASES;
		struct release *releases = reallocarray(heap->releases, max, sizeof(*releases));

		if (!releases)
			return -ENOMEM;
		heap->releases = releases;
		heap->max_releases = max;
	}
	*ret = heap->nr_releases_made++;
	return 0;
}

/* @entry, not held any more, becomes the newest release. */
static void append_release(struct heap *heap, struct entry *entry, uint32_t index,
			   const struct heap_op *op, uint32_t release)
{
	heap->releases[release] =
		(struct release){.op = *op, .entry = index, .prev = heap->newest, .next = NO_INDEX};
	if (heap->newest != NO_INDEX)
		heap->releases[heap->newest].next = release;
	else
		heap->oldest = release;
	heap->newest = release;
	heap->nr_releases++;
	entry->state = ENTRY_RELEASED;
	entry->link = release;
}

static void unlink_release(struct heap *heap, struct entry *entry)
{
	struct release *release = &heap->releases[entry->link];

	if (release->prev != NO_INDEX)
		heap->releases[release->prev].next = release->next;
	else
		heap->oldest = release->next;
	if (release->next != NO_INDEX)
		heap->releases[release->next].prev = release->prev;
	else
		heap->newest = release->prev;
	release->next = heap->free_release;
	heap->free_release = entry->link;
	heap->nr_releases--;
	entry->state = ENTRY_FREE;
}

static void forget_oldest_release(struct heap *heap)
{
	struct entry *entry = entry_at(heap, heap->releases[heap->oldest].entry);

	unlink_release(heap, entry);
	delete_entry(heap, entry->block.address);
}

static int copy_held(struct heap *copy, const struct heap *heap)
{
	for (uint32_t i = 0; i < heap->nr_made; i++) {
		struct heap_block block = entry_at(heap, i)->block;
		struct entry *added;

		if (entry_at(heap, i)->state != ENTRY_HELD)
			continue;
		block.inherited = true;
		block.provisional = false;
		added = add_entry(copy, &block);
		if (!added)
			return -ENOMEM;
		hold(copy, added, &block);
	}
	return 0;
}

/* In the order in which they will be forgotten. */
static int copy_releases(struct heap *copy, const struct heap *heap)
{
	for (uint32_t i = heap->oldest; i != NO_INDEX; i = heap->releases[i].next) {
		struct heap_block block = entry_at(heap, heap->releases[i].entry)->block;
		uint32_t release, index;
		struct entry *added;

		block.inherited = true;
		if (make_release(copy, &release))
			return -ENOMEM;
		added = add_entry(copy, &block);
		if (!added)
			return -ENOMEM;
		find_slot(copy, block.address, &index);
		append_release(copy, added, index, &heap->releases[i].op, release);
	}
	return 0;
}

struct heap *heap_copy(const struct heap *heap)
{
	struct heap *copy = heap_create();

	if (!copy)
		return NULL;
	if (copy_held(copy, heap) || copy_releases(copy, heap)) {
		heap_destroy(copy);
		return NULL;
	}
	return copy;
}

int heap_alloc(struct heap *heap, const struct heap_block *block, struct heap_block *ret_previous)
{
	struct entry *entry = find_entry(heap, block->address);
	int result = HEAP_OK;

	if (!entry) {
		entry = add_entry(heap, block);
		if (!entry)
			return -ENOMEM;
	} else if (entry->state == ENTRY_HELD) {
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
	uint32_t index, release;
	struct entry *entry;

	find_slot(heap, address, &index);
	if (index == NO_INDEX)
		return HEAP_UNKNOWN;
	entry = entry_at(heap, index);
	*ret_block = entry->block;
	if (entry->state == ENTRY_RELEASED) {
		*ret_released = heap->releases[entry->link].op;
		return HEAP_DOUBLE_FREE;
	}
	if (make_release(heap, &release))
		return -ENOMEM;
	unhold(heap, entry);
	append_release(heap, entry, index, op, release);
	if (heap->nr_releases > HEAP_MAX_RELEASES)
		forget_oldest_release(heap);
	return HEAP_OK;
}

int heap_unrelease(struct heap *heap, const struct heap_block *block, uint64_t sequence)
{
	struct entry *entry = find_entry(heap, block->address);

	if (!entry) { /* forgotten among so many releases since */
		entry = add_entry(heap, block);
		if (!entry)
			return -ENOMEM;
	} else if (entry->state == ENTRY_HELD ||
		   heap->releases[entry->link].op.sequence != sequence) {
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

	if (!entry || entry->state != ENTRY_HELD || entry->block.allocated.sequence != sequence)
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
	delete_entry(heap, address);
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

	return entry && entry->state == ENTRY_HELD ? &entry->block : NULL;
}

bool heap_prefetch(const struct heap *heap, uint64_t address, bool sooner)
{
	const struct slot *slot;

	if (heap->nr_slots < WORTH_PREFETCHING)
		return false;
	slot = &heap->slots[tag_of(heap, address) & (heap->nr_slots - 1)];
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
	const struct entry *entry = find_entry(heap, address);

	return entry && entry->state == ENTRY_RELEASED ? &heap->releases[entry->link].op : NULL;
}

/* Moves what a large heap still has to a small one. Failing for lack of memory does no harm. */
static void compact(struct heap *heap)
{
	struct heap *copy = heap_create();
	struct heap old;

	for (uint32_t i = 0; copy && i < heap->nr_made; i++) {
		const struct entry *entry = entry_at(heap, i);
		struct entry *added;

		if (entry->state != ENTRY_HELD)
			continue;
		added = add_entry(copy, &entry->block);
		if (!added) {
			heap_destroy(copy);
			return;
		}
		hold(copy, added, &entry->block);
	}
	if (!copy)
		return;
	old = *heap;
	*heap = *copy;
	*copy = old;
	heap_destroy(copy);
}

void heap_bury(struct heap *heap)
{
	while (heap->oldest != NO_INDEX)
		forget_oldest_release(heap);
	for (uint32_t i = 0; i < heap->nr_made; i++) {
		struct entry *entry = entry_at(heap, i);

		if (entry->state != ENTRY_HELD || !entry->block.inherited)
			continue;
		unhold(heap, entry);
		delete_entry(heap, entry->block.address);
	}
	if (heap->nr_made > WORTH_COMPACTING && heap->nr_entries < heap->nr_made / 2)
		compact(heap);
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
	for (uint32_t i = 0; i < heap->nr_made; i++) {
		const struct entry *entry = entry_at(heap, i);
		int result = entry->state == ENTRY_HELD ? visit(context, &entry->block) : 0;

		if (result)
			return result;
	}
	return 0;
}

void heap_drain(struct heap *heap, void (*visit)(void *context, const struct heap_block *b),
		void *context)
{
	free(heap->slots);
	heap->slots = NULL;
	/* The largest first: it is free again before the smaller ones are visited. */
	for (size_t segment = MAX_SEGMENTS; segment-- > 0;) {
		uint32_t start = segment_start(segment);

		for (uint32_t i = 0; heap->segments[segment] && start + i < heap->nr_made &&
				     i < segment_entries(segment);
		     i++) {
			const struct entry *entry = &heap->segments[segment][i];

			if (entry->state == ENTRY_HELD)
				visit(context, &entry->block);
		}
		free(heap->segments[segment]);
		heap->segments[segment] = NULL;
	}
	clear(heap);
}
