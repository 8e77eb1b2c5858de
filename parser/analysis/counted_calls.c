/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/analysis/counted_calls.h"

#include "common/schema/call_counts.h"
#include "common/scope.h"

int counted_calls_add(struct call_counts *counts, struct stack_store *stacks,
		      const struct perf_sample *sample, uint64_t start_ns)
{
	/* The innermost frame of a stack would be no call. */
	const uint64_t frames[] = {0, sample->args[CALLS_ADDRESS]};
	struct call_sample calls = {
		.number = (uint32_t)sample->mark_number,
		.pid = sample->origin.pid,
		.time_ns = sample->origin.time_ns,
		.since_ns = sample->args[CALLS_SINCE],
		.all = sample->args[CALLS_ALL],
		.observed = sample->args[CALLS_OBSERVED],
		.blocks = sample->args[CALLS_BLOCKS],
	};
	int err;

	/* Many stacks have these in common, which are no calls. */
	if (frames[1] <= STACK_LAST_MARK || frames[1] & STACK_INTERRUPTED)
		return 0;
	err = stack_store_add_callchain(stacks, calls.pid, frames, ARRAY_SIZE(frames),
					&calls.call_id);
	return err ? err : call_counts_add(counts, &calls, start_ns);
}
