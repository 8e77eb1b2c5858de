/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "scan/marking/hidden_pointers.h"

#include "scan/marking/chunks_in_flight.h"

#include <errno.h>
#include <stdlib.h>

#define MIN_ADDRESS_BITS 47 /* x86-64's; a tag may be in all others */
#define TOP_BYTE	 5 /* of an address, in memory; of one of more than 48 bits, not the last */
#define IN_EACH_BYTE	 0x0101010101010101ull
#define FILTER_PER_BLOCK 32
#define MIN_FILTER_BITS	 12
#define MAX_FILTER_BITS	 27 /* 16 MiB; more than four million blocks are looked up more often */

/* Addresses from 8 before to 7 behind a multiple of 16 are one: a block's start, or an end. */
static inline uint64_t near_of(uint64_t address)
{
	return (address + 8) & ~15ull;
}

static inline uint64_t hash_of(const struct hidden_pointers *hidden, uint64_t near)
{
	return near * 0x9e3779b97f4a7c15ull >> hidden->shift;
}

int hidden_pointers_init(struct hidden_pointers *ret, const struct heap *heap, size_t nr)
{
	unsigned bits = MIN_FILTER_BITS;

	while (bits < MAX_FILTER_BITS && 1ull << bits < nr * FILTER_PER_BLOCK)
		bits++;
	*ret = (struct hidden_pointers){
		.heap = heap,
		.shift = 64 - bits,
		.mask = (1ull << MIN_ADDRESS_BITS) - 1,
		.lowest = UINT64_MAX,
	};
	ret->filter = calloc(1ull << (bits - 6), sizeof(*ret->filter));
	return ret->filter ? 0 : -ENOMEM;
}

void hidden_pointers_deinit(struct hidden_pointers *hidden)
{
	free(hidden->filter);
	hidden->filter = NULL;
}

static void add_near(struct hidden_pointers *hidden, uint64_t near)
{
	uint64_t hash = hash_of(hidden, near), top = (near >> 8 * TOP_BYTE & 0xff) * IN_EACH_BYTE;
	size_t i = 0;

	hidden->filter[hash / 64] |= 1ull << (hash % 64);
	if (near < hidden->lowest)
		hidden->lowest = near;
	if (near > hidden->highest)
		hidden->highest = near;
	while (hidden->mask < near)
		hidden->mask = hidden->mask << 1 | 1;
	while (i < hidden->nr_tops && hidden->tops[i] != top)
		i++;
	hidden->tops[i] = top;
	if (i == hidden->nr_tops)
		hidden->nr_tops++;
}

void hidden_pointers_add(struct hidden_pointers *hidden, uint32_t block)
{
	struct heap_block_view view;

	heap_block_view(hidden->heap, block, &view);
	add_near(hidden, view.address);
	/* Otherwise the end is in the next mapping, whose start it may be. */
	if (!view.segment->mapped_block)
		add_near(hidden, near_of(view.address + view.size_bytes));
}

/* The block that ends at @address, or HEAP_NONE. */
static uint32_t block_before(const struct heap *heap, uint64_t address, struct heap_block_view *ret)
{
	uint64_t offset;
	uint32_t block = heap_find_block(heap, address - 1, &offset);

	if (block == HEAP_NONE)
		return HEAP_NONE;
	heap_block_view(heap, block, ret);
	return ret->address + ret->size_bytes == address ? block : HEAP_NONE;
}

/* True if a word beside that at @at leads into @block, as a container has its start and its end. */
static bool is_beside_pointer(const struct heap_block_view *block, const struct hidden_place *place,
			      uint64_t at)
{
	for (uint64_t i = at < 16 ? 0 : at - 16; i <= at + 16 && i + 8 <= place->size_bytes; i += 8)
		if (i != at && load_word(place->bytes + i) - block->address < block->size_bytes)
			return true;
	return false;
}

/* A word whose address is in the filter. */
struct found {
	int (*on_found)(void *context, uint64_t at, uint32_t block, enum hidden_kind kind);
	void *context;
};

static int try_word(const struct hidden_pointers *hidden, const struct hidden_place *place,
		    uint64_t at, const struct found *found)
{
	uint64_t word = load_word(place->bytes + at), address = word & hidden->mask;
	uint32_t block = chunk_block_at(hidden->heap, near_of(address)), before;
	enum hidden_kind kind = at % 8 ? HIDDEN_UNALIGNED : HIDDEN_TAGGED;
	struct heap_block_view view;
	int err = 0;

	if (at % 8 || word != address)
		/* Not both, which is more often a number. A tag may be in the low bits, too. */
		return block != HEAP_NONE && address >= near_of(address) &&
				       (word == address || !(at % 8))
			       ? found->on_found(found->context, at, block, kind)
			       : 0;
	/* The first look has seen this. */
	if (address >= near_of(address))
		return 0;
	before = block_before(hidden->heap, address, &view);
	if (before != HEAP_NONE)
		err = found->on_found(found->context, at, before, HIDDEN_OUTSIDE);
	if (err || block == HEAP_NONE ||
	    (before != HEAP_NONE && is_beside_pointer(&view, place, at)))
		return err;
	return found->on_found(found->context, at, block, HIDDEN_OUTSIDE);
}

static inline bool is_in_filter(const struct hidden_pointers *hidden, uint64_t word)
{
	uint64_t near = near_of(word & hidden->mask), hash = hash_of(hidden, near);

	return near >= hidden->lowest && near <= hidden->highest &&
	       hidden->filter[hash / 64] >> (hash % 64) & 1;
}

/* The words that begin in @place and whose top byte is in @word, which is at @at. */
static int try_tops(const struct hidden_pointers *hidden, const struct hidden_place *place,
		    uint64_t at, uint64_t word, const struct found *found)
{
	const uint64_t mask = (hidden->mask >> 8 * TOP_BYTE & 0xff) * IN_EACH_BYTE;
	int err = 0;

	for (size_t i = 0; i < hidden->nr_tops; i++) {
		uint64_t differs = (word & mask) ^ hidden->tops[i];
		/* The highest bit of each byte that is zero, and of some behind one. */
		uint64_t equal = (differs - IN_EACH_BYTE) & ~differs & IN_EACH_BYTE << 7;

		for (; equal && !err; equal &= equal - 1) {
			uint64_t start = at + (unsigned)__builtin_ctzll(equal) / 8 - TOP_BYTE;

			/* Before the first byte, it wraps. */
			if (start >= place->start && start < place->end &&
			    place->size_bytes - start >= 8 &&
			    is_in_filter(hidden, load_word(place->bytes + start)))
				err = try_word(hidden, place, start, found);
		}
	}
	return err;
}

int hidden_pointers_find(const struct hidden_pointers *hidden, const struct hidden_place *place,
			 int (*on_found)(void *context, uint64_t at, uint32_t block,
					 enum hidden_kind kind),
			 void *context)
{
	const struct found found = {on_found, context};
	uint64_t at = place->start & ~7ull, before = 0, word;
	int err = 0;

	if (at >= 8)
		before = load_word(place->bytes + at - 8);
	for (; at < place->end + 8 && at + 8 <= place->size_bytes && !err; at += 8, before = word) {
		word = load_word(place->bytes + at);
		/* Most are zeros. An address whose top byte is in @word has no byte behind it. */
		if (word | before)
			err = try_tops(hidden, place, at, word, &found);
	}
	return err;
}
