/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "scan/marking/place_cursor.h"

#define ROOT_PIECE_BYTES (256u << 10)
/* Of the heap, in which a second look finds little. */
#define HEAP_PIECE_BYTES (4u << 20)

void place_cursor_init(struct place_cursor *ret, const struct heap *heap, const struct roots *roots,
		       enum place_kind kind)
{
	*ret = (struct place_cursor){.heap = heap, .roots = roots, .kind = kind};
	pthread_mutex_init(&ret->lock, NULL);
}

void place_cursor_deinit(struct place_cursor *cursor)
{
	pthread_mutex_destroy(&cursor->lock);
}

static bool next_in_roots(struct place_cursor *cursor, struct place *ret)
{
	for (; cursor->next_root < cursor->roots->nr; cursor->next_root++, cursor->next_at = 0) {
		const struct root_range *range = &cursor->roots->ranges[cursor->next_root];
		uint64_t left = range->size_bytes - cursor->next_at;

		if (!left || (range->kind == ROOT_RED_ZONE) != (cursor->kind == PLACE_RED_ZONES))
			continue;
		*ret = (struct place){.range = range, .start = cursor->next_at};
		ret->end = ret->start + (left < ROOT_PIECE_BYTES ? left : ROOT_PIECE_BYTES);
		cursor->next_at = ret->end;
		return true;
	}
	return false;
}

static bool next_in_heap(struct place_cursor *cursor, struct place *ret)
{
	const struct heap_map *map = &cursor->heap->map;

	for (; cursor->next_segment < map->nr_segments;
	     cursor->next_segment++, cursor->next_at = 0) {
		const struct heap_segment *segment = &map->segments[cursor->next_segment];
		uint64_t address = segment->start + cursor->next_at, end;

		if (!snapshot_next_copied(cursor->heap->snapshot, &address, segment->end, &end))
			continue;
		if (end - address > HEAP_PIECE_BYTES)
			end = address + HEAP_PIECE_BYTES;
		*ret = (struct place){.segment = segment,
				      .start = address - segment->start,
				      .end = end - segment->start};
		cursor->next_at = ret->end;
		/* A word across the first byte may be an address, too: what lies before is zeros.
		 */
		ret->start -= ret->start < 7 ? ret->start : 7;
		return true;
	}
	return false;
}

bool place_cursor_next(struct place_cursor *cursor, struct place *ret)
{
	bool found;

	if (cursor->kind == PLACE_NONE)
		return false;
	pthread_mutex_lock(&cursor->lock);
	found = next_in_roots(cursor, ret) ||
		(cursor->kind == PLACE_ALL && next_in_heap(cursor, ret));
	pthread_mutex_unlock(&cursor->lock);
	return found;
}
