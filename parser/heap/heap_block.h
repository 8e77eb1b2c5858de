/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A block of memory, or another resource, and the operation that made it. */
#ifndef LEAKTOOLS_PARSER_HEAP_BLOCK_H
#define LEAKTOOLS_PARSER_HEAP_BLOCK_H

#include "common/schema/probe_schema.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* An operation on a block: which thread did it, and when. */
struct heap_op {
	uint64_t time_ns;
	uint64_t sequence; /* the event's number in time order */
	pid_t pid, tid;
	uint32_t stack_id;
	const struct probe_schema *schema; /* the called function */
};

struct heap_block {
	uint64_t address; /* or a handle; within a heap, its key (resource_key.h) */
	uint64_t size_bytes;
	bool size_known; /* false: the entry, which has the size, was missed */
	/*
	 * Not listed: copied by fork(), the parent's allocation; or realloc() took it out of the
	 * sizes that were recorded.
	 */
	bool inherited;
	bool provisional; /* made inside an open call, which may turn out to own it */
	struct heap_op allocated;
};

/* The memory in all held blocks of a heap, inherited ones included: not resources, nor mappings. */
struct held_memory {
	uint64_t bytes, blocks;
	uint64_t most_bytes;		/* at any time so far */
	uint64_t all_bytes, all_blocks; /* with those that ended */
};

#endif
