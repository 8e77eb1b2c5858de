/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * glibc's malloc, malloc/malloc.c and malloc/arena.c of 2.31 to 2.44, without symbols: what its
 * structures look like is known by what points to what. A chunk has a header of two words (the size
 * of the chunk before it if that is free; its own size and three flags), then the block.
 */
#ifndef LEAKTOOLS_SCAN_GLIBC_H
#define LEAKTOOLS_SCAN_GLIBC_H

#include "scan/heaps/heap.h"

#define GLIBC_HEADER	  16u
#define GLIBC_MIN_CHUNK	  32u
#define GLIBC_FENCEPOST	  16u
#define GLIBC_PREV_IN_USE 1u
#define GLIBC_IS_MAPPED	  2u
#define GLIBC_SIZE_MASK	  (~7ull)
#define GLIBC_NR_BINS	  127u
#define GLIBC_BINS_BYTES  (GLIBC_NR_BINS * 16)
#define GLIBC_NR_FASTBINS 10u

/* From 2.43 on, the header of a chunk with its own mapping leaves these out, at the end. */
#define GLIBC_MAPPED_REST 16u

/* struct malloc_state as it was found. */
struct glibc_arena {
	uint64_t address, top, system_bytes;
	unsigned number; /* in struct heap */
	bool is_main;
};

/* A part of an arena that is walked from its first chunk. */
struct glibc_part {
	uint64_t start, end;
	uint64_t top; /* the chunk that ends the walk; 0: a fencepost does */
	unsigned arena;
	/* What the walk has found: a bit for each unit where a block in use begins, and chunks. */
	uint64_t *used;
	struct chunk_count counts[CHUNK_NR_STATES];
};

static inline uint64_t glibc_part_words(const struct glibc_part *part)
{
	return (part->end - part->start) / HEAP_UNIT / 64 + 1;
}

struct glibc {
	struct heap *heap;
	const struct snapshot *snapshot;
	uint64_t bins_offset; /* in struct malloc_state */
	struct glibc_arena *arenas;
	size_t nr_arenas;
	struct glibc_part *parts;
	size_t nr_parts;
	uint64_t bytes_left;   /* of all regions: parts do not overlap */
	uint64_t steps_left;   /* glibc_take_steps() */
	bool knows_mapped;     /* mp_ was found */
	uint64_t mapped_bytes; /* what it counts */
	uint64_t nr_mapped[2]; /* of one version or the other */
};

/* Until 2.42. Other changes of 2.43 are known by that, too. */
static inline bool glibc_has_fastbins(const struct glibc *glibc)
{
	return glibc->bins_offset >= 16 + GLIBC_NR_FASTBINS * 8;
}

/*
 * Asks for @nr more steps, a chunk or a bin each. What was copied is hostile: its lists may be
 * rings, and its chunks may be reached in many ways. So there are as many steps as a real heap of
 * this size needs, several times over. Returns false if none are left; the heap is not whole then.
 */
bool glibc_take_steps(struct glibc *glibc, uint64_t nr);

/* The heap is not whole, for a first reason. */
void glibc_doubt(struct glibc *glibc, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
