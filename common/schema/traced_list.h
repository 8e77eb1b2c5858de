/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The list of held blocks that leakrec gives to a leakscan that it has started, in a file in
 * memory: the head, then the blocks.
 */
#ifndef LEAKTOOLS_SCHEMA_TRACED_LIST_H
#define LEAKTOOLS_SCHEMA_TRACED_LIST_H

#include <stdint.h>

struct traced_list_head {
	uint64_t held_ns; /* the blocks were held then: CLOCK_MONOTONIC; an earlier list is older */
	uint64_t nr;
};

struct traced_block {
	uint64_t address, size_bytes; /* as asked for */
};

/* leakscan's line that asks for the blocks that were held at SECONDS.NANOSECONDS. */
#define TRACED_LIST_ASKS "# asks "

#endif
