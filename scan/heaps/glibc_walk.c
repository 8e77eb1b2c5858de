/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "scan/heaps/glibc_walk.h"

#include <errno.h>
#include <stdlib.h>

/* [address, address + size_bytes) */
struct chunk {
	uint64_t address, size_bytes;
	bool is_used, is_fencepost;
};

/* Takes down what is walked over; @part is NULL if nobody wants to know. */
struct notes {
	struct glibc_part *part;
	uint64_t word, bits; /* of the bits in use, that are not in @part yet */
};

/*
 * True if the chunk is not what a free one is. A thread that is just splitting a chunk leaves old
 * headers to read; two that are free side by side, or a size that is not repeated behind, never
 * stand for long. Before the top there may be one that is just being cut off, without a header
 * behind.
 */
static bool is_contradictory(const struct chunk *chunk, const uint8_t *behind, bool was_free,
			     uint64_t top)
{
	return !chunk->is_used && chunk->address + chunk->size_bytes != top &&
	       (was_free || load_word(behind) != chunk->size_bytes);
}

static inline void note_chunk(struct notes *notes, const struct chunk *chunk)
{
	struct glibc_part *part = notes->part;
	struct chunk_count *count = &part->counts[chunk->is_fencepost ? CHUNK_OVERHEAD
						  : chunk->is_used    ? CHUNK_USED
								      : CHUNK_BIN];
	uint64_t unit = (chunk->address + GLIBC_HEADER - part->start) / HEAP_UNIT;

	count->nr++;
	count->bytes += chunk->size_bytes;
	if (!chunk->is_used || chunk->is_fencepost)
		return;
	if (unit / 64 != notes->word) {
		part->used[notes->word] = notes->bits;
		notes->word = unit / 64;
		notes->bits = 0;
	}
	notes->bits |= 1ull << (unit % 64);
}

/* @bytes is the copy of @from and what follows. */
static inline enum glibc_end walk(struct glibc *glibc, const uint8_t *bytes, uint64_t from,
				  uint64_t top, uint64_t end, struct notes *notes,
				  uint64_t *ret_end)
{
	uint64_t at = from, head = load_word(bytes + 8);
	bool was_free = false;

	while (at != top) {
		struct chunk chunk = {.address = at, .size_bytes = head & GLIBC_SIZE_MASK};
		uint64_t left = end - at;
		const uint8_t *behind;

		/* 0: the end of an arena's part. */
		if (chunk.size_bytes == 0 && left <= 2 * GLIBC_HEADER) {
			*ret_end = end;
			return GLIBC_END_FENCEPOST;
		}
		if (!glibc_take_steps(glibc, 1) || chunk.size_bytes < GLIBC_FENCEPOST ||
		    chunk.size_bytes % 16 || (head & GLIBC_IS_MAPPED) ||
		    chunk.size_bytes > left - GLIBC_HEADER)
			return GLIBC_END_BROKEN;
		behind = bytes + (at - from) + chunk.size_bytes;
		head = load_word(behind + 8);
		chunk.is_used = head & GLIBC_PREV_IN_USE;
		if (is_contradictory(&chunk, behind, was_free, top))
			return GLIBC_END_BROKEN;
		was_free = !chunk.is_used;
		chunk.is_fencepost =
			chunk.size_bytes == GLIBC_FENCEPOST || (head & GLIBC_SIZE_MASK) == 0;
		if (notes)
			note_chunk(notes, &chunk);
		at += chunk.size_bytes;
		/* The second of two ends a part of the main arena. */
		if (chunk.size_bytes == GLIBC_FENCEPOST &&
		    (head & GLIBC_SIZE_MASK) == GLIBC_FENCEPOST) {
			*ret_end = at + GLIBC_FENCEPOST;
			return GLIBC_END_FENCEPOST;
		}
	}
	*ret_end = top;
	return GLIBC_END_TOP;
}

/* The copy of what is to be walked over; NULL: there is none. */
static const uint8_t *bytes_of(const struct glibc *glibc, uint64_t from, uint64_t end)
{
	return from >= end || end - from < GLIBC_HEADER || from % 16
		       ? NULL
		       : snapshot_bytes(glibc->snapshot, from, end - from);
}

enum glibc_end glibc_walk(struct glibc *glibc, uint64_t from, uint64_t top, uint64_t end,
			  uint64_t *ret_end)
{
	const uint8_t *bytes = bytes_of(glibc, from, end);

	return bytes ? walk(glibc, bytes, from, top, end, NULL, ret_end) : GLIBC_END_BROKEN;
}

int glibc_walk_part(struct glibc *glibc, struct glibc_part *part, enum glibc_end *ret,
		    uint64_t *ret_end)
{
	const uint8_t *bytes = bytes_of(glibc, part->start, part->end);
	struct notes notes = {.part = part};

	*ret = GLIBC_END_BROKEN;
	if (!bytes)
		return 0;
	/* What is not walked over takes no memory. */
	part->used = calloc(glibc_part_words(part), sizeof(*part->used));
	if (!part->used)
		return -ENOMEM;
	*ret = walk(glibc, bytes, part->start, part->top, part->end, &notes, ret_end);
	part->used[notes.word] = notes.bits;
	return 0;
}
