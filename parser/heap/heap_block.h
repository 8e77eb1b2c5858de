/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A block of memory, or another resource, and the operation that made it. */
#ifndef LEAKTOOLS_PARSER_HEAP_BLOCK_H
#define LEAKTOOLS_PARSER_HEAP_BLOCK_H

#include "common/schema/probe_schema.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Who did something to a block, and when. */
struct heap_op {
	uint64_t time_ns;
	uint64_t sequence; /* the event's number in time order */
	pid_t pid, tid;
	uint32_t stack_id;
	const struct probe_schema *schema; /* the function that was called */
};

struct heap_block {
	uint64_t address; /* or a handle; within a heap, its key (resource_key.h) */
	uint64_t size_bytes;
	bool size_known;  /* false: the entry that carries the size was not seen */
	bool inherited;	  /* came with fork(): the parent's allocation */
	bool provisional; /* made within a call that has not returned: that call may yet own it */
	struct heap_op allocated;
};

#endif
