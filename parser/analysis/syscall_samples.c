/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/analysis/syscall_samples.h"

#include <string.h>

/*
 * The stack of a sample without a dump. Frame pointers do not show whom the C library's wrapper
 * returns to, as that has no frame; what stands on top of the stack may be it. The probed function
 * that the thread is in stands for all the frames that frame pointers miss up to there. Without a
 * callchain there is nothing else.
 */
static int add_chain(struct analysis *analysis, const struct perf_sample *sample, uint32_t *ret_id)
{
	pid_t pid = sample->origin.pid;
	const uint64_t *rest = sample->callchain;
	size_t nr = 0, nr_rest = sample->nr_callchain;
	uint64_t frames[STACK_MAX_FRAMES], caller = sample->caller;

	if (nr_rest > 1 && rest[nr_rest - 1] <= STACK_INCOMPLETE)
		analysis->incomplete_chains++;
	if (nr_rest) {
		frames[nr++] = *rest++;
		nr_rest--;
	} else if ((int64_t)sample->ip > 0) {
		frames[nr++] = sample->ip;
	}
	if (caller && nr && !(nr_rest && rest[0] == caller) &&
	    stack_store_is_code(analysis->stacks, pid, caller))
		frames[nr++] = caller;
	if (nr && sample->inside)
		frames[nr++] = sample->inside + 1; /* as if a call before it were under way */
	if (nr_rest > STACK_MAX_FRAMES - nr)
		nr_rest = STACK_MAX_FRAMES - nr;
	if (nr_rest)
		memcpy(frames + nr, rest, nr_rest * sizeof(*frames));
	if (nr + nr_rest == STACK_MAX_FRAMES)
		frames[STACK_MAX_FRAMES - 1] = STACK_TRUNCATED;
	return stack_store_add_callchain(analysis->stacks, pid, frames, nr + nr_rest, ret_id);
}

int syscall_samples_take(struct analysis *analysis, const struct perf_sample *sample)
{
	const struct perf_event_desc *event = sample->event;
	enum mapping_owner owner = MAPPING_OWNER_UNKNOWN;
	uint32_t stack_id = STACK_NONE;
	int err = 0;

	if (sample->has_dump)
		err = stack_store_add_dump(analysis->stacks, sample->origin.pid, &sample->dump,
					   &stack_id);
	else if (event->is_syscall_exit ? event->syscall->gives : event->syscall->takes)
		err = add_chain(analysis, sample, &stack_id);
	if (err)
		return err;
	if (analysis->ranks_own_mappings)
		owner = MAPPING_IS_RANKED;
	else if (event->is_syscall_exit && event->syscall->gives &&
		 (event->syscall->groups & SYSCALL_MAPPINGS))
		err = mapping_owners_find(&analysis->mapping_owners, analysis->stacks, stack_id,
					  &owner);
	return err ? err : heap_tracker_syscall(analysis->heaps, sample, stack_id, owner);
}
