/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "scan/heaps/glibc_parts.h"

#include "scan/heaps/glibc_walk.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#define MAX_HEAPS 65536u /* of an arena */

/* How far to look for the end of memory that another user of sbrk() has, 16 bytes a step. */
#define MAX_FOREIGN_BYTES   (64u << 20)
#define MAX_PARAMETERS_AWAY (1u << 20) /* both are in malloc.o's data */

/* The steps of a part: those of a page of chunks. No arena has many that are smaller. */
#define PART_STEPS (SCAN_PAGE_SIZE / 16)

/*
 * Adds a part that was walked over up to @end, and owns what it has; or frees it. What is behind
 * the last chunk of a part that has the top chunk is that one.
 */
static int add_part(struct glibc *glibc, struct glibc_part *part, enum glibc_end how, uint64_t end)
{
	size_t nr = glibc->nr_parts;
	struct glibc_part *grown = glibc->parts;
	uint64_t bytes, *shrunk;

	if (how == GLIBC_END_TOP)
		part->counts[CHUNK_TOP] = (struct chunk_count){1, part->end - end};
	bytes = part->end - part->start;
	shrunk = realloc(part->used, glibc_part_words(part) * sizeof(*part->used));
	part->used = shrunk ? shrunk : part->used;
	if (!glibc_take_steps(glibc, PART_STEPS)) {
		free(part->used);
		return 0;
	}
	if ((nr & (nr - 1)) == 0 && bytes <= glibc->bytes_left)
		grown = reallocarray(glibc->parts, nr ? nr * 2 : 1, sizeof(*grown));
	if (!grown || bytes > glibc->bytes_left) {
		free(part->used);
		return grown ? -EEXIST : -ENOMEM;
	}
	glibc->bytes_left -= bytes;
	glibc->parts = grown;
	glibc->parts[glibc->nr_parts++] = *part;
	return 0;
}

/* The end of the top chunk; 0: it cannot be one. */
static uint64_t end_of_top(const struct glibc *glibc, uint64_t top)
{
	uint64_t head, size;

	if (top % 16 || !snapshot_word(glibc->snapshot, top + 8, &head))
		return 0;
	size = head & GLIBC_SIZE_MASK;
	return size % 16 || top + size <= top || !snapshot_bytes(glibc->snapshot, top, size)
		       ? 0
		       : top + size;
}

/* True if the main arena's first chunk is at @start. */
static bool begins_at(struct glibc *glibc, uint64_t start, uint64_t top, uint64_t end)
{
	uint64_t at;

	return glibc_walk(glibc, start, top, end, &at) != GLIBC_END_BROKEN;
}

/*
 * struct malloc_par holds "int n_mmaps, n_mmaps_max, max_n_mmaps, no_dyn_threshold; size_t
 * mmapped_mem, max_mmapped_mem; char *sbrk_base" in a row. Before that, 2.35 to 2.42 have another
 * int: no_dyn_threshold is followed by 4 bytes of nothing. Looks for it near the main arena, as a
 * made-up region may be as large as it likes: @start is the base that is expected, 0 if any that a
 * walk proves will do.
 */
static uint64_t find_parameters(struct glibc *glibc, const struct glibc_arena *arena,
				uint64_t start, uint64_t end)
{
	const struct scan_region *region = snapshot_region(glibc->snapshot, arena->address);
	uint64_t lowest = snapshot_region(glibc->snapshot, arena->top)->start;
	uint64_t first_at, end_at;

	/* Made up, it may begin before the memory that was copied, which has its bins. */
	if (!region || !region->bytes)
		return 0;
	first_at = region->start + 40;
	end_at = region->end;
	if (arena->address - region->start > MAX_PARAMETERS_AWAY)
		first_at = arena->address / 8 * 8 - MAX_PARAMETERS_AWAY + 40;
	if (region->end - arena->address > MAX_PARAMETERS_AWAY)
		end_at = arena->address + MAX_PARAMETERS_AWAY;
	for (uint64_t at = first_at; at + 8 <= end_at; at += 8) {
		const uint8_t *bytes = region->bytes + (at - region->start);
		uint64_t base = load_word(bytes), most = load_word(bytes - 8),
			 now = load_word(bytes - 16), first = (base + 15) & ~15ull;

		if (base < lowest || base > arena->top || now > most ||
		    (now | most) % SCAN_PAGE_SIZE || (start && first != start) ||
		    (!start && !begins_at(glibc, first, arena->top, end)))
			continue;
		glibc->knows_mapped = true;
		glibc->mapped_bytes += now;
		glibc->nr_mapped[0] += (uint32_t)load_word(bytes - 36);
		glibc->nr_mapped[1] += (uint32_t)load_word(bytes - 32);
		return first;
	}
	return 0;
}

/* Looks behind memory of another user of sbrk() for the main arena's next chunk. */
static uint64_t find_next(struct glibc *glibc, uint64_t from, uint64_t top, uint64_t end)
{
	for (uint64_t at = from; at < top && at - from < MAX_FOREIGN_BYTES; at += 16)
		if (begins_at(glibc, at, top, end))
			return at;
	return 0;
}

/* Finds the main arena's first part, whose end is given, and walks over it. */
static int find_first(struct glibc *glibc, const struct glibc_arena *arena, struct glibc_part *part,
		      enum glibc_end *ret_how, uint64_t *ret_end)
{
	uint64_t end = part->end, expected = 0;
	int err;

	*ret_how = GLIBC_END_BROKEN;
	if (end > arena->system_bytes)
		expected = (end - arena->system_bytes + 15) & ~15ull;
	part->start = expected;
	err = glibc_walk_part(glibc, part, ret_how, ret_end);
	if (!err && *ret_how != GLIBC_END_BROKEN) {
		find_parameters(glibc, arena, expected, end);
		return 0;
	}
	free(part->used);
	*part = (struct glibc_part){.end = end, .top = arena->top, .arena = arena->number};
	part->start = err ? 0 : find_parameters(glibc, arena, 0, end);
	return part->start ? glibc_walk_part(glibc, part, ret_how, ret_end) : err;
}

/* Adds the first part and those that follow; *@ret: all were found. */
static int add_main_parts(struct glibc *glibc, const struct glibc_arena *arena,
			  struct glibc_part *part, enum glibc_end how, uint64_t part_end, bool *ret)
{
	const uint64_t end = part->end;
	int err = 0;

	for (;;) {
		if (how == GLIBC_END_FENCEPOST)
			part->end = part_end;
		err = add_part(glibc, part, how, part_end);
		*ret = how == GLIBC_END_TOP;
		if (err || how != GLIBC_END_FENCEPOST)
			return err;
		*part = (struct glibc_part){.start = find_next(glibc, part_end, arena->top, end),
					    .end = end,
					    .top = arena->top,
					    .arena = arena->number};
		if (!part->start)
			return 0;
		err = glibc_walk_part(glibc, part, &how, &part_end);
		if (err)
			return err;
	}
}

static int add_main(struct glibc *glibc, struct glibc_arena *arena)
{
	struct heap_arena *counted = &glibc->heap->arenas[arena->number];
	uint64_t end = end_of_top(glibc, arena->top), start, part_end = 0;
	struct glibc_part part = {.end = end, .top = arena->top, .arena = arena->number};
	enum glibc_end how;
	bool are_all = false;
	int err;

	/* Nothing was allocated from it yet: top is the first bin. */
	if (arena->system_bytes == 0)
		return 0;
	err = end ? find_first(glibc, arena, &part, &how, &part_end) : 0;
	if (err)
		return err;
	start = part.start;
	if (!start) {
		glibc_doubt(glibc, "the beginning of the main arena was not found");
		return 0;
	}
	err = add_main_parts(glibc, arena, &part, how, part_end, &are_all);
	if (!are_all)
		glibc_doubt(glibc, "a part of the main arena was not found");
	/* What other users of sbrk() have, the arena counts as its own. */
	counted->walked_bytes = arena->system_bytes;
	if (end - start > arena->system_bytes || arena->system_bytes - (end - start) >= 16)
		counted->walked_bytes = end - start;
	return err;
}

/* The start of the heap_info that @address belongs to: its first word is the arena. */
static uint64_t heap_of(const struct glibc *glibc, uint64_t address, uint64_t arena)
{
	/* HEAP_MAX_SIZE, and with huge pages four of them (heap_max_size(), 2.35). */
	static const uint64_t sizes[] = {64ull << 20, 8ull << 20, 4ull << 30, 128ull << 20,
					 1ull << 20};
	uint64_t word;

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		uint64_t base = address & ~(sizes[i] - 1);

		if (snapshot_word(glibc->snapshot, base, &word) && word == arena)
			return base;
	}
	return 0;
}

/* The heaps of another arena, from the one with the top chunk back to the first. */
static int add_other(struct glibc *glibc, struct glibc_arena *arena)
{
	struct heap_arena *counted = &glibc->heap->arenas[arena->number];
	uint64_t first = arena->address & ~(uint64_t)(SCAN_PAGE_SIZE - 1), info[3];
	uint64_t base = heap_of(glibc, arena->top, arena->address), top = arena->top;
	const uint64_t info_bytes = arena->address - first;
	struct glibc_part part;
	enum glibc_end how;
	int err = 0;

	for (size_t nr = 0; base && !err && nr < MAX_HEAPS; nr++) {
		uint64_t start = base + info_bytes, end, at;

		if (!snapshot_read(glibc->snapshot, base, info, sizeof(info)) ||
		    info[0] != arena->address || info[2] % SCAN_PAGE_SIZE)
			break;
		if (base == first)
			start = (arena->address + glibc->bins_offset + GLIBC_BINS_BYTES + 56 + 15) &
				~15ull;
		end = base + info[2];
		part = (struct glibc_part){start, end, top, arena->number, .used = NULL};
		err = glibc_walk_part(glibc, &part, &how, &at);
		if (err || how == GLIBC_END_BROKEN) {
			free(part.used);
			break;
		}
		err = add_part(glibc, &part, how, at);
		if (!err)
			err = heap_add_own(glibc->heap, base, start);
		counted->walked_bytes += info[2];
		if (base == first)
			return err;
		base = info[1];
		top = 0;
	}
	if (!err)
		glibc_doubt(glibc,
			    "the chunks of the arena at 0x%" PRIx64 " do not follow one another",
			    arena->address);
	return err;
}

int glibc_find_parts(struct glibc *glibc)
{
	int err = 0;

	for (size_t i = 0; i < glibc->nr_arenas && !err; i++)
		err = glibc->arenas[i].is_main ? add_main(glibc, &glibc->arenas[i])
					       : add_other(glibc, &glibc->arenas[i]);
	return err;
}
