/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Chunks with a mapping of their own. Nothing lists them. Neighbours become one mapping, and a
 * neighbour may be an arena; mprotect() makes several of one. Such a mapping begins with a header:
 * a word of 0, the mapping's size and a flag. memalign() moves the chunk to an aligned place and
 * writes another header there, whose first word is the distance from the mapping's start; the first
 * header stays, and is out of date after a realloc().
 */
#include "scan/heaps/glibc_mapped.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

struct search {
	struct glibc *glibc;
	const struct scan_region *region;
	uint64_t reach;		/* the end of memory that may be one mapping to the program */
	struct heap_range part; /* the next one of an arena */
	size_t next_part;	/* the one behind it */
	uint64_t free_from;	/* what lies before belongs to a chunk that was found */
	uint64_t found_bytes;
};

/* A mapping with its chunk: the block is behind the header. */
struct mapped {
	uint64_t start, end, block;
};

/*
 * True if the chunk of the mapping that begins at @start, and ends at @limit or before, has its
 * header at @at.
 */
static bool is_header(const struct scan_region *region, uint64_t limit, uint64_t start, uint64_t at,
		      struct mapped *ret)
{
	const uint8_t *bytes = region->bytes + (at - region->start);
	uint64_t head = load_word(bytes + 8), size = head & GLIBC_SIZE_MASK;

	if (at >= limit || load_word(bytes) != at - start ||
	    (head & ~GLIBC_SIZE_MASK) != GLIBC_IS_MAPPED || size < GLIBC_MIN_CHUNK || size % 16 ||
	    size > limit - at || (at + size) % SCAN_PAGE_SIZE)
		return false;
	*ret = (struct mapped){start, at + size, at + GLIBC_HEADER};
	return true;
}

/* Finds the chunk whose mapping begins at @page. */
static bool find_at(const struct search *search, uint64_t page, struct mapped *ret)
{
	const struct scan_region *region = search->region;
	const uint8_t *bytes = region->bytes + (page - region->start);
	uint64_t head = load_word(bytes + 8), limit = search->reach;

	if (load_word(bytes) != 0 || (head & (SCAN_PAGE_SIZE - 1)) != GLIBC_IS_MAPPED)
		return false;
	if (limit > search->part.start)
		limit = search->part.start;
	/* _int_memalign(): the first aligned place that leaves room for a chunk before it. */
	for (uint64_t alignment = 2 * GLIBC_HEADER; alignment < region->end - page;
	     alignment *= 2) {
		uint64_t block = (page + GLIBC_HEADER + alignment - 1) & ~(alignment - 1);

		if (block - page < GLIBC_MIN_CHUNK + GLIBC_HEADER)
			block += alignment;
		if (block < region->end &&
		    is_header(region, limit, page, block - GLIBC_HEADER, ret))
			return true;
	}
	return is_header(region, limit, page, page, ret);
}

/* Copies a chunk whose pages are in several regions. */
static int join(struct heap *heap, const struct mapped *mapped, const uint8_t **ret)
{
	const struct snapshot *snapshot = heap->snapshot;
	struct scan_region *joined =
		reallocarray(heap->joined, heap->nr_joined + 1, sizeof(*joined));
	int err;

	if (!joined)
		return -ENOMEM;
	heap->joined = joined;
	joined += heap->nr_joined;
	*joined = (struct scan_region){.start = mapped->start, .end = mapped->end};
	err = scan_region_reserve(joined, mapped->end - mapped->start);
	if (err)
		return err;
	heap->nr_joined++;
	*ret = joined->bytes;
	for (size_t i = snapshot_region_index(snapshot, mapped->start);
	     i < snapshot->nr_regions && snapshot->regions[i].start < mapped->end; i++) {
		const struct scan_region *region = &snapshot->regions[i];

		for (size_t j = 0; region->bytes && j < region->nr_runs; j++) {
			uint64_t start = region->runs[j].start, end = region->runs[j].end;

			if (start < mapped->start)
				start = mapped->start;
			if (end > mapped->end)
				end = mapped->end;
			if (start < end)
				memcpy(joined->bytes + (start - mapped->start),
				       region->bytes + (start - region->start), end - start);
		}
	}
	return 0;
}

static int add_mapped(struct search *search, const struct mapped *mapped)
{
	struct heap *heap = search->glibc->heap;
	struct heap_segment segment = {
		.start = mapped->start,
		.end = mapped->end,
		.bytes = search->region->bytes + (mapped->start - search->region->start),
		.mapped_block = mapped->block,
	};
	int err = 0;

	if (mapped->end > search->region->end)
		err = join(heap, mapped, &segment.bytes);
	search->found_bytes += mapped->end - mapped->start;
	search->free_from = mapped->end;
	return err ? err : heap_map_add_segment(&heap->map, &segment);
}

static int compare_parts(const void *a, const void *b)
{
	const struct glibc_part *x = a, *y = b;

	return x->end < y->end ? -1 : x->end > y->end;
}

/* Finds the first part of an arena that ends behind @address, which never becomes less. */
static void find_part(struct search *search, uint64_t address)
{
	const struct glibc *glibc = search->glibc;

	search->part = (struct heap_range){UINT64_MAX, UINT64_MAX};
	while (search->next_part < glibc->nr_parts && search->part.end == UINT64_MAX) {
		const struct glibc_part *part = &glibc->parts[search->next_part++];

		if (part->end > address)
			search->part = (struct heap_range){part->start, part->end};
	}
}

static int search_run(struct search *search, const struct page_run *run)
{
	uint64_t page = run->start > search->free_from ? run->start : search->free_from;
	struct mapped mapped;
	int err = 0;

	while (page < run->end && !err) {
		if (page >= search->part.end)
			find_part(search, page);
		if (page + SCAN_PAGE_SIZE > search->part.start) {
			page = (search->part.end + SCAN_PAGE_SIZE - 1) & ~(SCAN_PAGE_SIZE - 1ull);
		} else if (find_at(search, page, &mapped)) {
			err = add_mapped(search, &mapped);
			page = mapped.end;
		} else {
			page += SCAN_PAGE_SIZE;
		}
	}
	return err;
}

static bool may_be_mapped(const struct scan_region *region)
{
	return !region->inode && !region->is_shared && strncmp(region->path, "[stack", 6) != 0;
}

/* Searches the regions from number @first on that the program may see as one. */
static int search_neighbours(struct search *search, size_t first, size_t *ret_next)
{
	const struct snapshot *snapshot = search->glibc->snapshot;
	size_t next = first + 1;
	int err = 0;

	while (next < snapshot->nr_regions && may_be_mapped(&snapshot->regions[next]) &&
	       snapshot->regions[next].start == snapshot->regions[next - 1].end)
		next++;
	search->reach = snapshot->regions[next - 1].end;
	for (size_t i = first; i < next && !err; i++) {
		search->region = &snapshot->regions[i];
		if (!search->region->bytes)
			continue;
		for (size_t j = 0; j < search->region->nr_runs && !err; j++)
			err = search_run(search, &search->region->runs[j]);
	}
	*ret_next = next;
	return err;
}

int glibc_find_mapped(struct glibc *glibc)
{
	const struct snapshot *snapshot = glibc->snapshot;
	struct search search = {.glibc = glibc};
	int err = 0;

	if (glibc->nr_parts)
		qsort(glibc->parts, glibc->nr_parts, sizeof(*glibc->parts), compare_parts);
	for (size_t i = 0; i < snapshot->nr_regions && !err;) {
		if (may_be_mapped(&snapshot->regions[i]))
			err = search_neighbours(&search, i, &i);
		else
			i++;
	}
	if (!glibc->knows_mapped)
		glibc_doubt(glibc, "the libc's count of mapped chunks was not found");
	else if (search.found_bytes != glibc->mapped_bytes)
		glibc_doubt(glibc,
			    "mapped chunks of %" PRIu64
			    " bytes were found, the libc counts %" PRIu64,
			    search.found_bytes, glibc->mapped_bytes);
	return err;
}
