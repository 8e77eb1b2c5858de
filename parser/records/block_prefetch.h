/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Lets the reader tell the heap tracker which block the next samples are about, so that the tracker
 * can prefetch the block's entry into the CPU's cache. A hint changes no state and needs no lock.
 * Without hints only the speed differs.
 */
#ifndef LEAKTOOLS_PARSER_BLOCK_PREFETCH_H
#define LEAKTOOLS_PARSER_BLOCK_PREFETCH_H

#include <stdbool.h>
#include <stdint.h>

struct block_prefetch {
	const void *context;
	/*
	 * Hints at the block at @address: once early and once, with @sooner, shortly before its
	 * sample. Returns whether hints are worth their time.
	 */
	bool (*fetch)(const void *context, uint64_t address, bool sooner);
};

#endif
