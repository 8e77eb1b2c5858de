/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "scan/heaps/glibc_free_lists.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#define MAX_LIST_LENGTH 65536u /* of a thread's cache: counts have 16 bits */
#define NR_SMALL_BINS	64u    /* of a cache: one size each */

/* How far below a thread's control block its variable `tcache` may be. */
#define MAX_STATIC_TLS (64u << 10)

/* struct tcache_perthread_struct: numbers, then the heads of lists. */
struct cache_layout {
	uint64_t chunk_bytes;
	unsigned nr_bins, number_bytes;
};
static const struct cache_layout layouts[] = {
	{0x290, 64, 2}, /* 2.30 to 2.41 */
	{0x250, 64, 1}, /* 2.26 to 2.29 */
	{0x300, 76, 2}, /* 2.42 to 2.44: what is left of each bin, and bins for large chunks */
	{0x310, 76, 2}, /* 2.43: tcache_init() adds a chunk's header twice in some calls */
};

/* The segment of the block in use that begins at @address; NULL: there is none. */
static const struct heap_segment *used_block(const struct glibc *glibc, uint64_t address)
{
	const struct heap_segment *segment =
		address % HEAP_UNIT ? NULL : heap_map_segment(&glibc->heap->map, address);

	return segment && !segment->mapped_block &&
			       heap_map_is_set(&glibc->heap->map, heap_map_unit(segment, address))
		       ? segment
		       : NULL;
}

static uint64_t chunk_bytes(const struct heap_segment *segment, uint64_t address)
{
	return load_word(segment->bytes + (address - segment->start) - 8) & GLIBC_SIZE_MASK;
}

/* A free list: blocks that point to the next one, since 2.32 in a mangled way. */
struct free_list {
	uint64_t head;	     /* a block */
	uint64_t size_bytes; /* of each chunk; 0: of any */
	bool is_mangled;
	uint64_t link_bias; /* of a link from the next block: 16 in fastbins */
};

/* The block behind @address. */
static uint64_t next_of(const struct free_list *list, const struct heap_segment *segment,
			uint64_t address)
{
	uint64_t word = load_word(segment->bytes + (address - segment->start));

	/* PROTECT_PTR() in malloc/malloc.c */
	if (list->is_mangled)
		word ^= address >> 12;
	return word ? word + list->link_bias : 0;
}

/* Returns the length, or -1 if this is no such list. */
static int64_t list_length(struct glibc *glibc, const struct free_list *list, uint64_t most)
{
	uint64_t nr = 0;

	for (uint64_t address = list->head; address; nr++) {
		const struct heap_segment *segment = used_block(glibc, address);

		if (!segment || nr == most || !glibc_take_steps(glibc, 1) ||
		    (list->size_bytes && chunk_bytes(segment, address) != list->size_bytes))
			return -1;
		address = next_of(list, segment, address);
	}
	return (int64_t)nr;
}

/* Takes the list's blocks out of the map. A block that comes twice ends it. */
static void take_list(struct glibc *glibc, const struct free_list *list, enum chunk_state state)
{
	const struct heap_segment *segment;

	for (uint64_t address = list->head; address && (segment = used_block(glibc, address));
	     address = next_of(list, segment, address)) {
		struct chunk_count *counts = glibc->heap->arenas[segment->arena].counts;
		uint64_t bytes = chunk_bytes(segment, address);

		heap_map_clear(&glibc->heap->map, heap_map_unit(segment, address));
		counts[CHUNK_USED].nr--;
		counts[CHUNK_USED].bytes -= bytes;
		counts[state].nr++;
		counts[state].bytes += bytes;
	}
}

static void take_fastbins(struct glibc *glibc, const struct glibc_arena *arena)
{
	uint64_t heads[GLIBC_NR_FASTBINS];

	if (!snapshot_read(glibc->snapshot,
			   arena->address + glibc->bins_offset - 16 - sizeof(heads), heads,
			   sizeof(heads)))
		return;
	for (unsigned i = 0; i < GLIBC_NR_FASTBINS; i++) {
		struct free_list list = {
			.head = heads[i] ? heads[i] + GLIBC_HEADER : 0,
			.size_bytes = GLIBC_MIN_CHUNK + i * 16,
			.link_bias = GLIBC_HEADER,
		};
		const uint64_t most = glibc->heap->map.nr_units;

		for (int mangled = 1; list.head && mangled >= 0; mangled--) {
			list.is_mangled = mangled;
			if (list_length(glibc, &list, most) < 0)
				continue;
			take_list(glibc, &list, CHUNK_FAST);
			break;
		}
		if (list.head && used_block(glibc, list.head))
			glibc_doubt(glibc,
				    "a list of free chunks of the arena at 0x%" PRIx64 " is broken",
				    arena->address);
	}
}

/* A thread's cache, and what its numbers say beside the lists' lengths. */
struct cache {
	const struct cache_layout *layout;
	uint64_t address;
	const uint8_t *bytes;
	bool is_mangled;
};

static struct free_list cache_list(const struct cache *cache, unsigned bin)
{
	const struct cache_layout *layout = cache->layout;

	return (struct free_list){
		.head = load_word(cache->bytes + (size_t)layout->nr_bins * layout->number_bytes +
				  (size_t)bin * 8),
		.size_bytes = bin < NR_SMALL_BINS ? GLIBC_MIN_CHUNK + bin * 16ull : 0,
		.is_mangled = cache->is_mangled,
	};
}

static int64_t cache_number(const struct cache *cache, unsigned bin)
{
	uint16_t number = 0;

	memcpy(&number, cache->bytes + (size_t)bin * cache->layout->number_bytes,
	       cache->layout->number_bytes);
	return number;
}

/*
 * True if the numbers are the lengths of the lists, or what is left of a limit, but for one chunk
 * that a thread was just moving.
 */
static bool is_cache(struct glibc *glibc, const struct cache *cache)
{
	int64_t off_by = 0, off_left = 0, limit = -1;

	for (unsigned bin = 0; bin < cache->layout->nr_bins; bin++) {
		struct free_list list = cache_list(cache, bin);
		int64_t length = list_length(glibc, &list, MAX_LIST_LENGTH), sum, difference;

		if (length < 0 || !glibc_take_steps(glibc, 1))
			return false;
		difference = cache_number(cache, bin) - length;
		off_by += difference < 0 ? -difference : difference;
		sum = cache_number(cache, bin) + length;
		if (limit < 0)
			limit = sum;
		off_left += sum > limit ? sum - limit : limit - sum;
	}
	return off_by <= 1 || (limit > 0 && off_left <= 1);
}

static bool take_cache(struct glibc *glibc, struct cache *cache)
{
	for (int mangled = 1; mangled >= 0; mangled--) {
		cache->is_mangled = mangled;
		if (!is_cache(glibc, cache))
			continue;
		for (unsigned bin = 0; bin < cache->layout->nr_bins; bin++) {
			struct free_list list = cache_list(cache, bin);

			take_list(glibc, &list, CHUNK_CACHED);
		}
		return true;
	}
	return false;
}

/* @address is what a thread-local variable points to. */
static bool try_cache(struct glibc *glibc, uint64_t address)
{
	const struct heap_segment *segment = used_block(glibc, address);

	for (size_t i = 0; segment && i < sizeof(layouts) / sizeof(layouts[0]); i++) {
		struct cache cache = {
			.layout = &layouts[i],
			.address = address,
			.bytes = segment->bytes + (address - segment->start),
		};

		if (chunk_bytes(segment, address) == layouts[i].chunk_bytes)
			return take_cache(glibc, &cache);
	}
	return false;
}

/*
 * The thread's variables are next to its control block, at most as far as those of @before and
 * @after, the threads whose control blocks are the next ones.
 */
static void take_cache_of_thread(struct glibc *glibc, uint64_t thread_pointer, uint64_t before,
				 uint64_t after)
{
	const struct scan_region *region = snapshot_region(glibc->snapshot, thread_pointer);
	uint64_t limit, nr;

	if (!region || !region->bytes || thread_pointer % 8)
		return;
	if (THREAD_TLS_BELOW) {
		limit = region->start > before ? region->start : before;
		nr = (thread_pointer - limit) / 8;
	} else {
		limit = region->end < after ? region->end : after;
		nr = (limit - thread_pointer) / 8;
	}
	/* A block that a list has is not in use any more, so nothing is taken twice. */
	for (uint64_t i = 0; i < nr && i < MAX_STATIC_TLS / 8; i++) {
		uint64_t at =
			THREAD_TLS_BELOW ? thread_pointer - (i + 1) * 8 : thread_pointer + i * 8;

		if (try_cache(glibc, load_word(region->bytes + (at - region->start))))
			return;
	}
}

static int compare_addresses(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static int take_caches(struct glibc *glibc)
{
	const struct snapshot *snapshot = glibc->snapshot;
	size_t nr = snapshot->nr_threads;
	uint64_t *pointers = calloc(nr + 1, sizeof(*pointers)), before = 0;

	if (!pointers)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++)
		pointers[i] = snapshot->threads[i].registers.thread_pointer;
	qsort(pointers, nr, sizeof(*pointers), compare_addresses);
	for (size_t i = 0; i < nr; i++) {
		take_cache_of_thread(glibc, pointers[i], before,
				     i + 1 < nr ? pointers[i + 1] : UINT64_MAX);
		before = pointers[i];
	}
	free(pointers);
	return 0;
}

int glibc_take_free_chunks(struct glibc *glibc)
{
	for (size_t i = 0; i < glibc->nr_arenas && glibc_has_fastbins(glibc); i++)
		take_fastbins(glibc, &glibc->arenas[i]);
	return take_caches(glibc);
}
