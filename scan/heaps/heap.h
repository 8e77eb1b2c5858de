/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The heap of a process: which blocks are in use, and what the allocator keeps although it is free.
 * One file of this room, or several with one prefix, knows one allocator; this is what they share.
 */
#ifndef LEAKTOOLS_SCAN_HEAP_H
#define LEAKTOOLS_SCAN_HEAP_H

#include "scan/heaps/heap_map.h"
#include "scan/snapshot/snapshot.h"

/* What chunks are, and where the allocator keeps them. */
enum chunk_state {
	CHUNK_USED,
	CHUNK_MAPPED,	/* in use, with a mapping of its own */
	CHUNK_BIN,	/* free, for any thread */
	CHUNK_FAST,	/* free, in a fastbin */
	CHUNK_CACHED,	/* free, in a thread's cache */
	CHUNK_TOP,	/* not handed out yet */
	CHUNK_OVERHEAD, /* the allocator's own */
	CHUNK_NR_STATES,
};

struct chunk_count {
	uint64_t nr, bytes; /* with the allocator's headers */
};

struct heap_arena {
	uint64_t address;
	uint64_t system_bytes; /* what the arena says that it has */
	uint64_t walked_bytes; /* what was found */
	struct chunk_count counts[CHUNK_NR_STATES];
};

/* A part of the memory that belongs to the allocator and holds no roots: [start, end). */
struct heap_range {
	uint64_t start, end;
};

struct heap {
	const struct snapshot *snapshot;
	const char *allocator; /* "glibc malloc"; NULL: none was found */
	/* Only recorded blocks are known (traced_heap.h): nothing is lost for certain. */
	bool is_traced;
	/* The bytes of a block that the program may use: of each block by its number, or else by
	 * its header. */
	uint64_t *sizes;
	uint64_t (*block_bytes)(const struct heap_segment *segment, const uint8_t *bytes);
	struct heap_map map;
	struct heap_arena *arenas; /* the first one is the main arena */
	size_t nr_arenas;
	struct heap_range *own; /* arenas, and memory of heaps outside of chunks; by start */
	size_t nr_own;
	struct scan_region *joined; /* copies of blocks that lie in several regions */
	size_t nr_joined;
	bool is_whole;	   /* every byte that the allocator has was found */
	char why_not[160]; /* if it is not whole */
};

void heap_deinit(struct heap *heap);

/* The chunks of all arenas, by state. */
void heap_sum_chunks(const struct heap *heap, struct chunk_count ret[static CHUNK_NR_STATES]);

/* Of these, what is free and not given back to the kernel. */
uint64_t heap_retained_bytes(const struct chunk_count chunks[static CHUNK_NR_STATES]);

/* The bytes of block @nr that the program may use. */
uint64_t heap_block_bytes(const struct heap *heap, uint32_t nr);

/* The same, and where it is, and its copy. */
struct heap_block_view {
	uint64_t address, size_bytes;
	const uint8_t *bytes;
	const struct heap_segment *segment;
};
void heap_block_view(const struct heap *heap, uint32_t nr, struct heap_block_view *ret);

/* The same, of a block whose place is known. */
static inline void heap_block_view_at(const struct heap *heap, uint32_t nr,
				      const struct heap_segment *segment, uint64_t address,
				      struct heap_block_view *ret)
{
	ret->segment = segment;
	ret->address = address;
	ret->bytes = segment->bytes + (address - segment->start);
	ret->size_bytes = heap->sizes ? heap->sizes[nr] : heap->block_bytes(segment, ret->bytes);
}

/*
 * The next bytes of a block that may be other than zeros, from offset *@at on: [*@at, *@ret_end).
 * Returns false if there are no more. A program may touch a few pages of a block of terabytes.
 */
bool heap_block_next(const struct heap *heap, const struct heap_block_view *view, uint64_t *at,
		     uint64_t *ret_end);

/* The block that holds @address, or HEAP_NONE; *@ret_offset is the distance from its start. */
uint32_t heap_find_block(const struct heap *heap, uint64_t address, uint64_t *ret_offset);

int heap_add_own(struct heap *heap, uint64_t start, uint64_t end);

#endif
