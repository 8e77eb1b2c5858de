/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The places to look through for pointers, in pieces that several threads take one after another.
 */
#ifndef LEAKTOOLS_SCAN_PLACE_CURSOR_H
#define LEAKTOOLS_SCAN_PLACE_CURSOR_H

#include "scan/roots/roots.h"

#include <pthread.h>

/* Which roots. */
enum place_kind {
	PLACE_NONE,
	PLACE_ROOTS, /* all but red zones */
	PLACE_RED_ZONES,
	PLACE_ALL, /* all but red zones, and then the heap */
};

/* A piece: words that begin in [start, end) of a root's bytes, or else of a segment's. */
struct place {
	const struct root_range *range;
	const struct heap_segment *segment;
	uint64_t start, end;
};

struct place_cursor {
	pthread_mutex_t lock;
	const struct heap *heap;
	const struct roots *roots;
	enum place_kind kind;
	size_t next_root, next_segment;
	uint64_t next_at; /* in that root, or in that segment */
};

void place_cursor_init(struct place_cursor *ret, const struct heap *heap, const struct roots *roots,
		       enum place_kind kind);
void place_cursor_deinit(struct place_cursor *cursor);

/* Takes the next piece; false: there are no more. Pages that were not copied are left out. */
bool place_cursor_next(struct place_cursor *cursor, struct place *ret);

#endif
