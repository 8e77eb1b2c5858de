/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The moment at which the most bytes were held. */
#ifndef LEAKTOOLS_PARSER_PEAK_H
#define LEAKTOOLS_PARSER_PEAK_H

#include "parser/calls/heap_tracker.h"

/* Zero it before the first change. */
struct peak {
	uint64_t held_bytes; /* now */
	uint64_t peak_bytes; /* the most so far */
	uint64_t sequence;   /* of the event that reached the peak */
};

/* Counts the next change. A block of unknown size counts as 0. */
static inline void peak_change(struct peak *peak, const struct heap_change *change)
{
	uint64_t bytes = change->block.size_known ? change->block.size_bytes : 0;

	peak->held_bytes += change->enters ? bytes : -bytes;
	/* A hostile file may release more than it allocated. */
	if ((int64_t)peak->held_bytes <= 0 || peak->held_bytes <= peak->peak_bytes)
		return;
	peak->peak_bytes = peak->held_bytes;
	peak->sequence = change->op.sequence;
}

#endif
