/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a heap is made of, for heap_model.c alone. Entries and releases lie in pages, and so does a
 * flat table with linear probing that finds the entries by address. A block costs an entry of 72
 * bytes and 11 to 22 bytes of the table (test/bench/parser tells what becomes of that).
 *
 * A copy for a forked child has the same pages until either side writes to them (shared_pages.h).
 * What lies in an entry page that is not the heap's own was inherited, whatever its flags say: they
 * are its writer's. A page that becomes the heap's own gets the flags that are true there.
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
	struct shared_pages slots;
	uint32_t nr_slots; /* a power of two, or 0 */
	uint32_t nr_entries;
	struct shared_pages entries;
	uint32_t nr_made; /* entries that were in use at some time: the first ones */
	uint32_t free_entry;

	struct shared_pages releases;
	uint32_t nr_releases_made, free_release;
	uint32_t oldest, newest;

	uint64_t depth;		 /* forks between the first heap and this one */
	bool is_shared;		 /* there are pages that others may have, too */
	struct heap_block found; /* an inherited one, as heap_find() shows it */
	struct shared_memory *memory;

	size_t nr_held, nr_releases;
	uint64_t seed; /* of the hash: colliding addresses can't be prepared */
};

static inline struct shared_page *entry_page(const struct heap *heap, uint32_t index)
{
	return heap->entries.pages[index / ENTRY_PAGE];
}

static inline struct entry *entry_in(struct shared_page *page, uint32_t index)
{
	return &((struct entry *)page->elements)[index % ENTRY_PAGE];
}

/* To be read. */
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

/* Page @index for the heap to write to; NULL: out of memory. */
struct shared_page *heap_own_page(struct heap *heap, struct shared_pages *pages, uint32_t index);
/* The same of the page of entry @index. */
struct shared_page *heap_own_entry_page(struct heap *heap, uint32_t index);

/* To be written to. NULL: out of memory; then the heap is of no use any more. */
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

/* A new entry, neither held nor among the releases; NULL: out of memory. */
struct entry *heap_add_entry(struct heap *heap, const struct heap_block *block,
			     uint32_t *ret_index);

/* Forgets @address. Returns 0 or -ENOMEM. */
int heap_delete_entry(struct heap *heap, uint64_t address);

#endif
