/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/text/cause_frames.h"

int cause_frames_load(struct cause_frames *frames, const struct leak_report *report,
		      const struct leak_cause *cause, const struct leak_site *site)
{
	const struct site_verdict *verdict = &report->verdicts.sites[site->site];
	const struct heap_op *op = &report->held[report->verdicts.order[verdict->first]].allocated;
	struct named_stack *stack = &frames->stack;
	int err = named_stack_load(stack, report->analysis->stacks, verdict->site->stack_id);
	size_t shared;

	if (err)
		return err;
	frames->first = frames->user = named_stack_user_frame(stack, op->schema->function);
	frames->inner = SIZE_MAX;
	if (cause->nr < 2 || !verdict->nr_shared)
		return 0;
	shared = stack->nr - verdict->nr_shared;
	/* Stacks that end early share no caller by that. */
	if (shared > frames->first && shared < stack->nr && !stack->frames[shared].is_mark) {
		frames->first = shared;
		frames->inner = shared - 1;
		/* If it is recursive, its innermost call says more. */
		while (frames->inner > 0 &&
		       stack->frames[frames->inner].name == stack->frames[shared].name)
			frames->inner--;
	}
	return 0;
}
