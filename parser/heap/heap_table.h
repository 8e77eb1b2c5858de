/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The structure of a heap, for heap_model.c only. Entries and releases are stored in pages, and so
 * is a hash table with linear probing that finds entries by address. A block takes an entry of 72
 * bytes and 11 to 22 bytes of the table (measured by test/bench/parser).
 *
 * A copy for a forked child has the same pages until either side writes to them (shared_pages.h).
 * Everything in an entry page that is not the heap's own was inherited, whatever its flags say:
 * these are the writer's. When a page becomes the heap's own, its flags are corrected.
 */
#ifndef LEAKTOOLS_PARSER_HEAP_TABLE_H
#define LEAKTOOLS_PARSER_HEAP_TABLE_H

#include "common/hash.h"
#include "parser/heap/heap_block.h"
#include "parser/heap/shared_pages.h"

#define ENTRY_PAGE   64u /* elements; powers of two */
#define SLOT_PAGE    512u
#define RELEASE_PAGE 64u
#define NO_INDEX     UINT32_MAX

enum entry_state { ENTRY_FREE, ENTRY_HELD, ENTRY_RELEASED };

/* The state of an address: a held block, or the last block there and its release. */
struct entry {
	struct heap_block block;
	uint8_t state;
	bool is_young; /* in heap->young */
	uint32_t link; /* ENTRY_RELEASED: index into heap->releases; ENTRY_FREE: the next free entry
			*/
};

/* The release of an entry's block. */
struct release {
	struct heap_op op;
	uint32_t entry;
	uint32_t prev, next; /* older and newer; unused ones have only @next */
};

struct slot {
	uint32_t tag;	/* part of the address's hash; its preferred slot */
	uint32_t entry; /* NO_INDEX: the slot is empty */
};

struct heap {
	struct shared_pages slots;
	uint32_t nr_slots; /* a power of two, or 0 */
	uint32_t nr_entries;
	struct shared_pages entries;
	uint32_t nr_made; /* entries that were ever in use: the first ones */
	uint32_t free_entry;

	struct shared_pages releases;
	uint32_t nr_releases_made, free_release;
	uint32_t oldest, newest;

	uint64_t depth;		 /* forks between the first heap and this one */
	bool is_shared;		 /* other heaps may have some of the pages */
	struct heap_block found; /* an inherited block that heap_find() returned */
	struct shared_memory *memory;
	struct held_memory held;

	/* Entries that have held a block since heap_for_each_young(); unless @all_young: all. */
	uint32_t *young;
	uint32_t nr_young, max_young;
	bool all_young;

	size_t nr_held, nr_releases;
	uint64_t seed; /* of the hash, so that nobody can prepare collisions */
};

static inline struct shared_page *entry_page(const struct heap *heap, uint32_t index)
{
	return heap->entries.pages[index / ENTRY_PAGE];
}

static inline struct entry *entry_in(struct shared_page *page, uint32_t index)
{
	return &((struct entry *)page->elements)[index % ENTRY_PAGE];
}

/* For reading only. */
static inline const struct entry *entry_at(const struct heap *heap, uint32_t index)
{
	return entry_in(entry_page(heap, index), index);
}

static inline const struct slot *slot_at(const struct heap *heap, uint32_t at)
{
	const struct shared_page *page = heap->slots.pages[at / SLOT_PAGE];

	return &((const struct slot *)page->elements)[at % SLOT_PAGE];
}

static inline const struct release *release_at(const struct heap *heap, uint32_t index)
{
	const struct shared_page *page = heap->releases.pages[index / RELEASE_PAGE];

	return &((const struct release *)page->elements)[index % RELEASE_PAGE];
}

static inline bool is_inherited(const struct heap *heap, uint32_t index)
{
	return entry_page(heap, index)->owner != heap->depth;
}

/* Page @index, writable for the heap. NULL: out of memory. */
struct shared_page *heap_own_page(struct heap *heap, struct shared_pages *pages, uint32_t index);
/* The page of entry @index, writable for the heap. NULL: out of memory. */
struct shared_page *heap_own_entry_page(struct heap *heap, uint32_t index);

/* Writable elements. NULL: out of memory; the heap is unusable then. */
static inline struct entry *own_entry(struct heap *heap, uint32_t index)
{
	struct shared_page *page =
		heap->is_shared ? heap_own_entry_page(heap, index) : entry_page(heap, index);

	return page ? entry_in(page, index) : NULL;
}

static inline struct slot *own_slot(struct heap *heap, uint32_t at)
{
	struct shared_page *page = heap->is_shared
					   ? heap_own_page(heap, &heap->slots, at / SLOT_PAGE)
					   : heap->slots.pages[at / SLOT_PAGE];

	return page ? &((struct slot *)page->elements)[at % SLOT_PAGE] : NULL;
}

static inline struct release *own_release(struct heap *heap, uint32_t index)
{
	struct shared_page *page =
		heap->is_shared ? heap_own_page(heap, &heap->releases, index / RELEASE_PAGE)
				: heap->releases.pages[index / RELEASE_PAGE];

	return page ? &((struct release *)page->elements)[index % RELEASE_PAGE] : NULL;
}

static inline uint32_t tag_of(const struct heap *heap, uint64_t address)
{
	return (uint32_t)hash_mix(address ^ heap->seed, 0xd6e8feb86659fd93);
}

/* The index of the entry of @address, or NO_INDEX. */
uint32_t heap_find_entry(const struct heap *heap, uint64_t address);

/* Adds an entry, neither held nor released. NULL: out of memory. */
struct entry *heap_add_entry(struct heap *heap, const struct heap_block *block,
			     uint32_t *ret_index);

/* Forgets @address. Returns 0 or -ENOMEM. */
int heap_delete_entry(struct heap *heap, uint64_t address);

#endif
