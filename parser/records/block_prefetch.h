/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The reader's hint to the heap tracker that a probe's sample about a block will come soon, so that
 * what is known of the block can be fetched into the CPU's cache. It changes no state and may come
 * without a lock; leaving it out changes nothing but the speed.
 */
#ifndef LEAKTOOLS_PARSER_BLOCK_PREFETCH_H
#define LEAKTOOLS_PARSER_BLOCK_PREFETCH_H

#include <stdbool.h>
#include <stdint.h>

struct block_prefetch {
	const void *context;
	/*
	 * Called twice for the block at @address, the second time with @sooner. Returns whether it
	 * is worth the time.
	 */
	bool (*fetch)(const void *context, uint64_t address, bool sooner);
};

#endif
