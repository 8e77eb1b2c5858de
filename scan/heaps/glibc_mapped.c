/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Chunks with a mapping of their own. Nothing lists them. Neighbours become one mapping, and a
 * neighbour may be an arena; mprotect() makes several of one. Such a mapping begins with a header:
 * a word of 0, the mapping's size and a flag. memalign() moves the chunk to an aligned place and
 * writes another header there, whose first word is the distance from the mapping's start; the first
 * header stays, and is out of date after a realloc(). Since 2.43 (mmap_set_chunk()), the size is 16
 * less, and the first word's lowest bit is set for huge pages.
 *
 * Pages of other memory may begin like that, too: a Java VM has tables of small numbers. What the
 * libc counts shows that, and mostly which ones they are.
 */
#include "scan/heaps/glibc_mapped.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#define MAX_WRONG 8u /* chunks that are none */

/* A mapping with its chunk: the block is behind the header. */
struct mapped {
	uint64_t start, end, block;
	const struct scan_region *region;
	bool is_wrong;
};

struct search {
	struct glibc *glibc;
	struct mapped *found;
	size_t nr_found;
	uint64_t found_bytes;
	bool takes_all;		/* also what lies in other chunks */
	uint64_t rest_bytes;	/* of a mapping, that a chunk's size leaves out */
	uint64_t distance_mask; /* of a header's first word */
	const struct scan_region *region;
	uint64_t reach;		/* the end of memory that may be one mapping to the program */
	struct heap_range part; /* the next one of an arena */
	size_t next_part;	/* the one behind it */
	uint64_t free_from;	/* what lies before belongs to a chunk that was found */
};

/*
 * True if the chunk of the mapping that begins at @start, and ends at @limit or before, has its
 * header at @at.
 */
static bool is_header(const struct search *search, uint64_t limit, uint64_t start, uint64_t at,
		      struct mapped *ret)
{
	const struct scan_region *region = search->region;
	const uint8_t *bytes = region->bytes + (at - region->start);
	uint64_t head = load_word(bytes + 8), size = (head & GLIBC_SIZE_MASK) + search->rest_bytes;

	if (at >= limit || (load_word(bytes) & search->distance_mask) != at - start ||
	    (head & ~GLIBC_SIZE_MASK) != GLIBC_IS_MAPPED || size < GLIBC_MIN_CHUNK || size % 16 ||
	    size > limit - at || (at + size) % SCAN_PAGE_SIZE)
		return false;
	*ret = (struct mapped){start, at + size, at + GLIBC_HEADER, region, false};
	return true;
}

/* Finds the chunk whose mapping begins at @page. */
static bool find_at(const struct search *search, uint64_t page, struct mapped *ret)
{
	const struct scan_region *region = search->region;
	const uint8_t *bytes = region->bytes + (page - region->start);
	uint64_t head = load_word(bytes + 8) + search->rest_bytes, limit = search->reach;

	if ((load_word(bytes) & search->distance_mask) != 0 ||
	    (head & (SCAN_PAGE_SIZE - 1)) != GLIBC_IS_MAPPED)
		return false;
	if (limit > search->part.start)
		limit = search->part.start;
	/* _int_memalign(): the first aligned place, until 2.42 one that leaves room for a chunk. */
	for (uint64_t alignment = 2 * GLIBC_HEADER; alignment < region->end - page;
	     alignment *= 2) {
		uint64_t block = (page + GLIBC_HEADER + alignment - 1) & ~(alignment - 1);

		if (glibc_has_fastbins(search->glibc) &&
		    block - page < GLIBC_MIN_CHUNK + GLIBC_HEADER)
			block += alignment;
		if (block < region->end &&
		    is_header(search, limit, page, block - GLIBC_HEADER, ret))
			return true;
	}
	return is_header(search, limit, page, page, ret);
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

static int add_segment(struct heap *heap, const struct mapped *mapped)
{
	const struct scan_region *region = mapped->region;
	struct heap_segment segment = {
		.start = mapped->start,
		.end = mapped->end,
		.bytes = region->bytes + (mapped->start - region->start),
		.mapped_block = mapped->block,
	};
	int err = 0;

	if (mapped->end > region->end)
		err = join(heap, mapped, &segment.bytes);
	return err ? err : heap_map_add_segment(&heap->map, &segment);
}

static int add_found(struct search *search, const struct mapped *mapped)
{
	size_t nr = search->nr_found;

	if ((nr & (nr - 1)) == 0) {
		struct mapped *grown = reallocarray(search->found, nr ? nr * 2 : 1, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		search->found = grown;
	}
	search->found[search->nr_found++] = *mapped;
	search->found_bytes += mapped->end - mapped->start;
	search->free_from = search->takes_all ? mapped->start + SCAN_PAGE_SIZE : mapped->end;
	return 0;
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
			err = add_found(search, &mapped);
			page = search->free_from;
		} else {
			page += SCAN_PAGE_SIZE;
		}
	}
	return err;
}

static bool may_be_mapped(const struct scan_region *region)
{
	return !region->has_file && !region->is_shared && strncmp(region->path, "[stack", 6) != 0;
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

static int search_all(struct search *search)
{
	const struct snapshot *snapshot = search->glibc->snapshot;
	int err = 0;

	search->rest_bytes = glibc_has_fastbins(search->glibc) ? 0 : GLIBC_MAPPED_REST;
	search->distance_mask = glibc_has_fastbins(search->glibc) ? ~0ull : ~1ull;
	for (size_t i = 0; i < snapshot->nr_regions && !err;) {
		if (may_be_mapped(&snapshot->regions[i]))
			err = search_neighbours(search, i, &i);
		else
			i++;
	}
	return err;
}

/* Which of the chunks are wrong, if exactly one choice leaves as much as the libc counts. */
struct choice {
	struct search *search;
	size_t wrong[MAX_WRONG];
	unsigned nr_wrong;
	unsigned nr_fit;
	size_t fit[MAX_WRONG]; /* the first choice that fits */
};

static bool is_chosen(const struct choice *choice, size_t nr)
{
	for (unsigned i = 0; i < choice->nr_wrong; i++)
		if (choice->wrong[i] == nr)
			return true;
	return false;
}

static bool is_rest_apart(const struct choice *choice)
{
	uint64_t end = 0;

	if (!glibc_take_steps(choice->search->glibc, choice->search->nr_found))
		return false;
	for (size_t i = 0; i < choice->search->nr_found; i++) {
		if (is_chosen(choice, i))
			continue;
		if (choice->search->found[i].start < end)
			return false;
		end = choice->search->found[i].end;
	}
	return true;
}

/* Chooses @nr more, of @bytes in all, from number @first on. */
static void choose(struct choice *choice, size_t first, unsigned nr, uint64_t bytes)
{
	const struct search *search = choice->search;

	if (nr == 0) {
		if (bytes == 0 && is_rest_apart(choice) && choice->nr_fit++ == 0)
			memcpy(choice->fit, choice->wrong, sizeof(choice->fit));
		return;
	}
	for (size_t i = first; i < search->nr_found && choice->nr_fit < 2; i++) {
		uint64_t size = search->found[i].end - search->found[i].start;

		if (!glibc_take_steps(search->glibc, 1))
			return;
		if (size > bytes)
			continue;
		choice->wrong[choice->nr_wrong++] = i;
		choose(choice, i + 1, nr - 1, bytes - size);
		choice->nr_wrong--;
	}
}

/* More was found than there is. What is in wrong chunks becomes roots. */
static int leave_out_wrong(struct search *search)
{
	struct glibc *glibc = search->glibc;
	struct search all = {.glibc = glibc, .takes_all = true};
	int err = search_all(&all);

	for (int i = 0; i < 2 && !err; i++) {
		struct choice choice = {.search = &all};
		uint64_t nr = all.nr_found - glibc->nr_mapped[i];

		if (nr - 1 >= MAX_WRONG)
			continue;
		choose(&choice, 0, (unsigned)nr, all.found_bytes - glibc->mapped_bytes);
		if (choice.nr_fit != 1)
			continue;
		for (uint64_t j = 0; j < nr; j++)
			all.found[choice.fit[j]].is_wrong = true;
		free(search->found);
		*search = all;
		search->found_bytes = glibc->mapped_bytes;
		return 0;
	}
	free(all.found);
	return err;
}

int glibc_find_mapped(struct glibc *glibc)
{
	struct search search = {.glibc = glibc};
	int err;

	if (glibc->nr_parts)
		qsort(glibc->parts, glibc->nr_parts, sizeof(*glibc->parts), compare_parts);
	err = search_all(&search);
	if (!err && glibc->knows_mapped && search.found_bytes > glibc->mapped_bytes)
		err = leave_out_wrong(&search);
	for (size_t i = 0; i < search.nr_found && !err; i++)
		if (!search.found[i].is_wrong)
			err = add_segment(glibc->heap, &search.found[i]);
	free(search.found);
	if (!glibc->knows_mapped)
		glibc_doubt(glibc, "the libc's count of mapped chunks was not found");
	else if (search.found_bytes != glibc->mapped_bytes)
		glibc_doubt(glibc,
			    "mapped chunks of %" PRIu64
			    " bytes were found, the libc counts %" PRIu64,
			    search.found_bytes, glibc->mapped_bytes);
	return err;
}
