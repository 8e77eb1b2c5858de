/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "scan/heaps/glibc_arenas.h"

#include <errno.h>
#include <stdlib.h>

#define MAX_ARENAS 65536u

/* Where the bins may begin in struct malloc_state; 112 in 2.26 to 2.42. */
#define MIN_BINS_OFFSET 64u
#define MAX_BINS_OFFSET 256u

/* Behind the bins: a map of them, then these. */
#define NEXT_AT	  (GLIBC_BINS_BYTES + 16)
#define SYSTEM_AT (NEXT_AT + 24)
#define STATE_END (SYSTEM_AT + 16)

/*
 * True if all bins from @bins on are rings: an empty one points to itself, no other does. A thread
 * may have changed one half of one bin.
 */
static bool are_bins(const struct snapshot *snapshot, uint64_t bins)
{
	uint64_t words[GLIBC_NR_BINS * 2];
	unsigned nr_halves = 0;

	if (!snapshot_read(snapshot, bins, words, sizeof(words)))
		return false;
	for (uint64_t i = 0; i < GLIBC_NR_BINS; i++) {
		uint64_t self = bins + i * 16 - 16, first = words[2 * i], last = words[2 * i + 1];

		nr_halves += (first == self) != (last == self);
		if (nr_halves > 1 || first % 16 || last % 16 || !first || !last)
			return false;
	}
	return true;
}

static int add_arena(struct glibc *glibc, uint64_t address, bool is_main)
{
	size_t nr = glibc->nr_arenas;
	uint64_t bins = address + glibc->bins_offset;
	struct glibc_arena *arena;

	if ((nr & (nr - 1)) == 0) {
		arena = reallocarray(glibc->arenas, nr ? nr * 2 : 1, sizeof(*arena));
		if (!arena)
			return -ENOMEM;
		glibc->arenas = arena;
	}
	arena = &glibc->arenas[nr];
	*arena = (struct glibc_arena){
		.address = address, .number = (unsigned)nr, .is_main = is_main};
	if (!snapshot_word(glibc->snapshot, bins - 16, &arena->top) ||
	    !snapshot_word(glibc->snapshot, bins + SYSTEM_AT, &arena->system_bytes))
		return -EINVAL;
	glibc->nr_arenas++;
	return heap_add_own(glibc->heap, address, bins + STATE_END);
}

/*
 * Follows the ring of arenas from main_arena, whose bins are at @bins. Returns 1 if it is a ring, 0
 * if not, or -ENOMEM.
 */
static int add_ring(struct glibc *glibc, uint64_t bins, uint64_t offset)
{
	size_t nr_before = glibc->nr_arenas, own_before = glibc->heap->nr_own;
	uint64_t address = bins - offset;
	int err;

	glibc->bins_offset = offset;
	for (size_t i = 0; i < MAX_ARENAS; i++) {
		if (!are_bins(glibc->snapshot, address + offset))
			break;
		err = add_arena(glibc, address, i == 0);
		if (err == -ENOMEM)
			return err;
		if (err || !snapshot_word(glibc->snapshot, address + offset + NEXT_AT, &address))
			break;
		if (address == bins - offset)
			return 1;
	}
	glibc->nr_arenas = nr_before;
	glibc->heap->nr_own = own_before;
	return 0;
}

/* Looks for a ring whose main_arena has its bins at @bins. */
static int try_bins(struct glibc *glibc, uint64_t bins)
{
	int found = 0;

	if (!are_bins(glibc->snapshot, bins))
		return 0;
	/* All libcs of a process are of one kind. */
	if (glibc->nr_arenas)
		return add_ring(glibc, bins, glibc->bins_offset);
	for (uint64_t offset = MIN_BINS_OFFSET; offset <= MAX_BINS_OFFSET && !found; offset += 8)
		found = add_ring(glibc, bins, offset);
	return found;
}

/* @address holds an empty bin, which may be any of main_arena's. */
static int try_bin(struct glibc *glibc, uint64_t address, uint64_t *ret_end)
{
	int found = 0;

	for (uint64_t i = 0; i < GLIBC_NR_BINS && !found; i++) {
		found = try_bins(glibc, address - i * 16);
		*ret_end = address - i * 16 + STATE_END;
	}
	return found;
}

static int search_run(struct glibc *glibc, const struct scan_region *region,
		      const struct page_run *run)
{
	uint64_t address = run->start;

	while (address + 16 <= run->end) {
		const uint8_t *at = region->bytes + (address - region->start);
		uint64_t end;
		int found = 0;

		if (load_word(at) == address - 16 && load_word(at + 8) == address - 16)
			found = try_bin(glibc, address, &end);
		if (found < 0)
			return found;
		address = found ? end : address + 8;
	}
	return 0;
}

int glibc_arenas_find(struct glibc *glibc)
{
	const struct snapshot *snapshot = glibc->snapshot;
	int err = 0;

	/* main_arena is initialized data, so in a page of a file. */
	for (size_t i = 0; i < snapshot->nr_regions && !err; i++) {
		const struct scan_region *region = &snapshot->regions[i];

		if (!region->bytes || !region->inode || !region->is_writable || region->is_shared)
			continue;
		for (size_t j = 0; j < region->nr_runs && !err; j++)
			err = search_run(glibc, region, &region->runs[j]);
	}
	return err;
}
