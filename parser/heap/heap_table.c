/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/heap/heap_table.h"

#include <errno.h>
#include <string.h>

#define MAX_ENTRIES (1u << 31)
#define MIN_TABLE   32u /* slots; a power of two */

static void mark_inherited(struct entry *entry)
{
	entry->block.inherited = true;
	entry->is_young = false;
	if (entry->state == ENTRY_HELD)
		entry->block.provisional = false;
}

struct shared_page *heap_own_page(struct heap *heap, struct shared_pages *pages, uint32_t index)
{
	const struct shared_page *page = pages->pages[index];

	if (page->refs == 1 && page->owner == heap->depth)
		return pages->pages[index];
	return shared_pages_own(pages, index, heap->depth, heap->memory);
}

struct shared_page *heap_own_entry_page(struct heap *heap, uint32_t index)
{
	bool was_inherited = is_inherited(heap, index);
	struct shared_page *page = heap_own_page(heap, &heap->entries, index / ENTRY_PAGE);
	uint32_t first = index - index % ENTRY_PAGE;

	for (uint32_t i = 0; page && was_inherited && i < ENTRY_PAGE; i++)
		if (first + i < heap->nr_made)
			mark_inherited(entry_in(page, i));
	return page;
}

static struct entry *make_entry(struct heap *heap, uint32_t *ret_index)
{
	uint32_t index = heap->free_entry;
	struct entry *entry;

	if (index != NO_INDEX) {
		entry = own_entry(heap, index);
		if (entry)
			heap->free_entry = entry->link;
		*ret_index = index;
		return entry;
	}
	index = *ret_index = heap->nr_made;
	if (index == MAX_ENTRIES || (index == heap->entries.nr * ENTRY_PAGE &&
				     shared_pages_add(&heap->entries, ENTRY_PAGE * sizeof(*entry),
						      heap->depth, heap->memory)))
		return NULL;
	entry = own_entry(heap, index);
	if (!entry)
		return NULL;
	entry->is_young = false;
	heap->nr_made++;
	return entry;
}

static int give_back_entry(struct heap *heap, uint32_t index)
{
	struct entry *entry = own_entry(heap, index);

	if (!entry)
		return -ENOMEM;
	entry->state = ENTRY_FREE;
	entry->link = heap->free_entry;
	heap->free_entry = index;
	return 0;
}

/* The slot of @address. *@ret_entry is its entry, or NO_INDEX if there is none. */
static uint32_t find_slot(const struct heap *heap, uint64_t address, uint32_t *ret_entry)
{
	uint32_t mask = heap->nr_slots - 1, tag = tag_of(heap, address), at = tag & mask;
	const struct slot *slot;

	*ret_entry = NO_INDEX;
	if (!heap->nr_slots)
		return 0;
	for (slot = slot_at(heap, at); slot->entry != NO_INDEX;) {
		if (slot->tag == tag && entry_at(heap, slot->entry)->block.address == address) {
			*ret_entry = slot->entry;
			break;
		}
		at = (at + 1) & mask;
		slot = at % SLOT_PAGE ? slot + 1 : slot_at(heap, at);
	}
	return at;
}

uint32_t heap_find_entry(const struct heap *heap, uint64_t address)
{
	uint32_t index;

	find_slot(heap, address, &index);
	return index;
}

static int put_slot(struct heap *heap, struct slot slot)
{
	uint32_t mask = heap->nr_slots - 1, at = slot.tag & mask;
	struct slot *free_slot;

	while (slot_at(heap, at)->entry != NO_INDEX)
		at = (at + 1) & mask;
	free_slot = own_slot(heap, at);
	if (!free_slot)
		return -ENOMEM;
	*free_slot = slot;
	return 0;
}

/* Makes a table of @nr empty slots. */
static int make_table(struct heap *heap, uint32_t nr)
{
	uint32_t in_page = nr < SLOT_PAGE ? nr : SLOT_PAGE;

	for (uint32_t i = 0; i < nr; i += in_page) {
		uint32_t size_bytes = in_page * (uint32_t)sizeof(struct slot);

		if (shared_pages_add(&heap->slots, size_bytes, heap->depth, heap->memory))
			return -ENOMEM;
		/* NO_INDEX */
		memset(heap->slots.pages[heap->slots.nr - 1]->elements, 0xff, size_bytes);
	}
	heap->nr_slots = nr;
	return 0;
}

/* Keeps the table at most three quarters full. */
static int grow_table(struct heap *heap)
{
	struct heap old = {.slots = heap->slots, .nr_slots = heap->nr_slots};
	int err;

	if ((uint64_t)heap->nr_entries + 1 <= (uint64_t)heap->nr_slots * 3 / 4)
		return 0;
	heap->slots = (struct shared_pages){0};
	err = make_table(heap, old.nr_slots ? 2 * old.nr_slots : MIN_TABLE);
	for (uint32_t i = 0; !err && i < old.nr_slots; i++)
		if (slot_at(&old, i)->entry != NO_INDEX)
			err = put_slot(heap, *slot_at(&old, i));
	shared_pages_clear(&old.slots, heap->memory);
	return err;
}

struct entry *heap_add_entry(struct heap *heap, const struct heap_block *block, uint32_t *ret_index)
{
	struct entry *entry;

	if (grow_table(heap))
		return NULL;
	entry = make_entry(heap, ret_index);
	if (!entry || put_slot(heap, (struct slot){tag_of(heap, block->address), *ret_index}))
		return NULL;
	heap->nr_entries++;
	entry->block = *block;
	entry->state = ENTRY_FREE;
	entry->link = NO_INDEX;
	return entry;
}

/* Moves the slots after the gap up, but none before its preferred slot. */
int heap_delete_entry(struct heap *heap, uint64_t address)
{
	uint32_t mask = heap->nr_slots - 1, index;
	uint32_t gap = find_slot(heap, address, &index), at = gap;
	struct slot *slot;

	if (index == NO_INDEX)
		return 0;
	if (give_back_entry(heap, index))
		return -ENOMEM;
	heap->nr_entries--;
	for (;;) {
		struct slot next;

		at = (at + 1) & mask;
		next = *slot_at(heap, at);
		if (next.entry == NO_INDEX)
			break;
		if (((at - next.tag) & mask) < ((at - gap) & mask))
			continue;
		slot = own_slot(heap, gap);
		if (!slot)
			return -ENOMEM;
		*slot = next;
		gap = at;
	}
	slot = own_slot(heap, gap);
	if (!slot)
		return -ENOMEM;
	slot->entry = NO_INDEX;
	return 0;
}
