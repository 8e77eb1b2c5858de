/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "scan/heaps/glibc_arenas.h"

#include <errno.h>
#include <stdlib.h>

#define MAX_ARENAS 65536u
#define MAX_LIBCS  16u /* as many as there are namespaces (DL_NNS in ldsodefs.h) */

/* Where the bins may begin in struct malloc_state; 112 in 2.26 to 2.42, then 24 (no fastbins). */
#define MIN_BINS_OFFSET 24u
#define MAX_BINS_OFFSET 256u

/* Behind the bins: a map of them, then these. */
#define NEXT_AT	  (GLIBC_BINS_BYTES + 16)
#define SYSTEM_AT (NEXT_AT + 24)
#define STATE_END (SYSTEM_AT + 16)

/* The words of a bin, a ring: an empty one points to itself, no other does. */
enum bin { BIN_NONE, BIN_EMPTY, BIN_HALF, BIN_USED };

static enum bin bin_at(uint64_t address, const uint8_t *bytes)
{
	uint64_t self = address - 16, first = load_word(bytes), last = load_word(bytes + 8);

	/* Chunks lie at multiples of 16, and the bins of 2.43 halfway between two. */
	if ((first != self && first % 16) || (last != self && last % 16) || !first || !last)
		return BIN_NONE;
	return first == self && last == self   ? BIN_EMPTY
	       : first == self || last == self ? BIN_HALF
					       : BIN_USED;
}

/* True if all bins from @bins on are rings. A thread may have changed one half of one bin. */
static bool are_bins(struct glibc *glibc, uint64_t bins)
{
	uint8_t bytes[GLIBC_BINS_BYTES];
	unsigned nr_halves = 0;

	if (!glibc_take_steps(glibc, GLIBC_NR_BINS) ||
	    !snapshot_read(glibc->snapshot, bins, bytes, sizeof(bytes)))
		return false;
	for (uint64_t i = 0; i < GLIBC_NR_BINS; i++) {
		enum bin bin = bin_at(bins + i * 16, bytes + i * 16);

		nr_halves += bin == BIN_HALF;
		if (nr_halves > 1 || bin == BIN_NONE)
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
		if (!are_bins(glibc, address + offset))
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

	/* All libcs of a process are of one kind. */
	if (glibc->nr_arenas)
		return add_ring(glibc, bins, glibc->bins_offset);
	for (uint64_t offset = MIN_BINS_OFFSET; offset <= MAX_BINS_OFFSET && !found; offset += 8)
		found = add_ring(glibc, bins, offset);
	return found;
}

/*
 * Looks at each pair of words from @from on once, and remembers of those before it what are_bins()
 * asks.
 */
static int search_run(struct glibc *glibc, const struct scan_region *region,
		      const struct page_run *run, uint64_t from, unsigned *nr_libcs)
{
	uint64_t empty = 0, half = 0, half_before = 0;

	for (uint64_t at = from; at + 16 <= run->end && *nr_libcs < MAX_LIBCS; at += 16) {
		enum bin bin = bin_at(at, region->bytes + (at - region->start));
		uint64_t bins = at + 16 - GLIBC_BINS_BYTES;
		int found;

		if (bin == BIN_NONE)
			from = at + 16;
		if (bin == BIN_EMPTY)
			empty = at;
		if (bin == BIN_HALF) {
			half_before = half;
			half = at;
		}
		if (from > bins || empty < bins || half_before >= bins)
			continue;
		found = try_bins(glibc, bins);
		if (found < 0)
			return found;
		*nr_libcs += (unsigned)found;
		if (found)
			from = at + 16;
	}
	return 0;
}

int glibc_arenas_find(struct glibc *glibc)
{
	const struct snapshot *snapshot = glibc->snapshot;
	unsigned nr_libcs = 0;
	int err = 0;

	/* main_arena is initialized data, so in a page of a file. */
	for (size_t i = 0; i < snapshot->nr_regions && !err; i++) {
		const struct scan_region *region = &snapshot->regions[i];

		if (!region->bytes || !region->has_file || !region->is_writable ||
		    region->is_shared)
			continue;
		for (size_t j = 0; j < region->nr_runs * 2 && !err; j++) {
			const struct page_run *run = &region->runs[j / 2];

			err = search_run(glibc, region, run, run->start + j % 2 * 8, &nr_libcs);
		}
	}
	return err;
}
