/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "scan/heaps/glibc_walk.h"

/*
 * True if the chunk is not what a free one is. A thread that is just splitting a chunk leaves old
 * headers to read; two that are free side by side, or a size that is not repeated behind, never
 * stand for long. Before the top there may be one that is just being cut off, without a header
 * behind.
 */
static bool is_contradictory(const struct glibc_chunk *chunk, const uint8_t *behind, bool was_free,
			     uint64_t top)
{
	return !chunk->is_used && chunk->address + chunk->size_bytes != top &&
	       (was_free || load_word(behind) != chunk->size_bytes);
}

enum glibc_end glibc_walk(struct glibc *glibc, uint64_t from, uint64_t top, uint64_t end,
			  glibc_visit *visit, void *context, uint64_t *ret_end)
{
	const uint8_t *bytes;
	uint64_t at = from, head;
	bool was_free = false;

	if (from >= end || end - from < GLIBC_HEADER || from % 16)
		return GLIBC_END_BROKEN;
	bytes = snapshot_bytes(glibc->snapshot, from, end - from);
	if (!bytes)
		return GLIBC_END_BROKEN;
	head = load_word(bytes + 8);
	while (at != top) {
		struct glibc_chunk chunk = {.address = at, .size_bytes = head & GLIBC_SIZE_MASK};
		uint64_t left = end - at;

		/* 0: the end of an arena's part. */
		if (chunk.size_bytes == 0 && left <= 2 * GLIBC_HEADER) {
			*ret_end = end;
			return GLIBC_END_FENCEPOST;
		}
		if ((!visit && !glibc_take_steps(glibc, 1)) || chunk.size_bytes < GLIBC_FENCEPOST ||
		    chunk.size_bytes % 16 || (head & GLIBC_IS_MAPPED) ||
		    chunk.size_bytes > left - GLIBC_HEADER)
			return GLIBC_END_BROKEN;
		head = load_word(bytes + (at - from) + chunk.size_bytes + 8);
		chunk.is_used = head & GLIBC_PREV_IN_USE;
		if (is_contradictory(&chunk, bytes + (at - from) + chunk.size_bytes, was_free, top))
			return GLIBC_END_BROKEN;
		was_free = !chunk.is_used;
		chunk.is_fencepost =
			chunk.size_bytes == GLIBC_FENCEPOST || (head & GLIBC_SIZE_MASK) == 0;
		if (visit)
			visit(context, &chunk);
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
