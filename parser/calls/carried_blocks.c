/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/calls/carried_blocks.h"

#include <string.h>

static int add_block(struct heap_sink *sink, struct heap *heap, const struct heap_block *block,
		     const struct heap_op *op)
{
	const struct site_block site_block = site_block_of(block);
	struct heap_block previous;
	int result = heap_alloc(heap, block, &previous);

	if (result == HEAP_STILL_HELD) {
		const struct site_block former = site_block_of(&previous);

		/* A recording lists each block once. */
		heap_sink_tell(sink, false, &previous, op);
		site_stats_withdraw(sink->sites, &former);
	} else if (result < 0) {
		return result;
	}
	sink->stats.allocations++;
	sink->stats.allocated_bytes += block->size_bytes;
	sink->stats.carried_blocks++;
	heap_sink_tell(sink, true, block, op);
	return site_stats_enter(sink->sites, &site_block);
}

int carried_blocks_add(struct heap_sink *sink, const struct process *process, struct heap *heap,
		       const struct perf_sample *sample, uint32_t stack_id)
{
	const struct probe_schema *schema = probe_schema_find(sample->mark_text);
	struct heap_op op = {
		.time_ns = sample->origin.time_ns,
		.sequence = sample->origin.sequence,
		.pid = process->heap_pid,
		.tid = process->heap_pid,
		.stack_id = stack_id,
		.schema = schema ? schema : probe_schema_find("malloc"),
	};
	int err = 0;

	for (size_t i = 0; !err && i < sample->mark_number; i++) {
		uint64_t values[HELD_NR_VALUES];
		struct heap_block block = {.size_known = true, .allocated = op};

		memcpy(values, sample->held + i * sizeof(values), sizeof(values));
		block.address = values[HELD_ADDRESS];
		block.size_bytes = values[HELD_SIZE];
		/* Hostile: not from the future. */
		if (values[HELD_ALLOCATED] < op.time_ns)
			block.allocated.time_ns = values[HELD_ALLOCATED];
		err = block.address ? add_block(sink, heap, &block, &op) : 0;
	}
	return err;
}
