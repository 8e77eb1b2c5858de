/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which size of the rings would have had room for the events that were lost. */
#ifndef LEAKTOOLS_RECORDER_RING_ADVICE_H
#define LEAKTOOLS_RECORDER_RING_ADVICE_H

#include <stddef.h>
#include <stdint.h>

struct ring_losses {
	uint64_t most_lost;    /* events without room in one ring, the worst */
	uint64_t sample_bytes; /* the mean size of an event's record */
	uint32_t pages;	       /* of each ring */
	uint32_t page_bytes;
	uint32_t most_pages; /* that a ring may have on this machine */
};

/*
 * The pages of a ring, a power of two, that has room for what its ring held and lost, even if
 * nothing had been read meanwhile: an upper bound. 0: more than @most_pages.
 */
uint32_t ring_advice_pages(const struct ring_losses *losses);

/*
 * Writes "12 events found no room in rings of 16 pages; -m 64 has room for as many". Empty if no
 * ring lost any: larger rings would not have helped.
 */
void ring_advice_text(char *ret, size_t size, const struct ring_losses *losses);

#endif
