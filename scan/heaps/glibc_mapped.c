/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Chunks with a mapping of their own. Nothing lists them, and neighbours become one mapping. A
 * header is one whose sizes fit pages: the first word says how far it is from the mapping's start
 * (memalign() moves it), the second is the rest of the mapping, with a flag.
 */
#include "scan/heaps/glibc_walk.h"

#include <errno.h>
#include <inttypes.h>

struct search {
	struct glibc *glibc;
	const struct scan_region *region;
	uint64_t free_from; /* what lies before belongs to a chunk that was found */
	uint64_t found_bytes;
};

/* True if a header is at @at; its mapping is *@ret. */
static bool is_header(const struct search *search, uint64_t at, struct heap_range *ret)
{
	const struct scan_region *region = search->region;
	const uint8_t *bytes = region->bytes + (at - region->start);
	uint64_t before = load_word(bytes), head = load_word(bytes + 8),
		 size = head & GLIBC_SIZE_MASK;

	if ((head & ~GLIBC_SIZE_MASK) != GLIBC_IS_MAPPED || size < GLIBC_MIN_CHUNK || size % 16 ||
	    before > at - search->free_from || size > region->end - at ||
	    (at - before) % SCAN_PAGE_SIZE || (at + size) % SCAN_PAGE_SIZE)
		return false;
	*ret = (struct heap_range){at - before, at + size};
	return true;
}

/* Looks at the places of the page @page where a header can be: 16 bytes before a power of two. */
static bool find_in_page(const struct search *search, uint64_t page, uint64_t *ret_header,
			 struct heap_range *ret)
{
	for (uint64_t alignment = 16; alignment <= SCAN_PAGE_SIZE; alignment *= 2) {
		*ret_header = page + alignment - 16;
		if (is_header(search, *ret_header, ret))
			return true;
	}
	return false;
}

static int search_run(struct search *search, const struct page_run *run)
{
	uint64_t page = run->start > search->free_from ? run->start : search->free_from;
	struct heap_range mapping;
	uint64_t header;
	int err = 0;

	while (page < run->end && !err) {
		if (!find_in_page(search, page, &header, &mapping)) {
			page += SCAN_PAGE_SIZE;
			continue;
		}
		err = heap_map_add_segment(&search->glibc->heap->map,
					   &(struct heap_segment){
						   .start = mapping.start,
						   .end = mapping.end,
						   .bytes = search->region->bytes +
							    (mapping.start - search->region->start),
						   .is_mapped = true,
					   });
		search->found_bytes += mapping.end - mapping.start;
		page = search->free_from = mapping.end;
	}
	return err;
}

/* True if the region is of an arena, or its pages cannot be of mapped chunks. */
static bool is_excluded(const struct glibc *glibc, const struct scan_region *region)
{
	if (!region->bytes || region->inode || region->is_shared || !region->is_writable ||
	    strncmp(region->path, "[stack", 6) == 0)
		return true;
	for (size_t i = 0; i < glibc->nr_parts; i++)
		if (glibc->parts[i].start >= region->start && glibc->parts[i].start < region->end)
			return true;
	return false;
}

int glibc_find_mapped(struct glibc *glibc)
{
	const struct snapshot *snapshot = glibc->snapshot;
	struct search search = {.glibc = glibc};
	int err = 0;

	for (size_t i = 0; i < snapshot->nr_regions && !err; i++) {
		search.region = &snapshot->regions[i];
		search.free_from = search.region->start;
		if (is_excluded(glibc, search.region))
			continue;
		for (size_t j = 0; j < search.region->nr_runs && !err; j++)
			err = search_run(&search, &search.region->runs[j]);
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
