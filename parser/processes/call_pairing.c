/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/processes/call_pairing.h"

#include "parser/processes/heap_anomalies.h"

#include <string.h>

/*
 * glibc 2.36's malloc.o has 25 KiB of code (Debian, x86-64: 0x94134-0x9a390 in libc.so.6). The
 * calls of __libc_free in __malloc_arena_thread_freeres are 0x162 and 0x191 bytes after it.
 */
#define NEAR_BYTES 0x10000

/*
 * A return probe replaces the return address by that of its trampoline: the first byte of the page
 * that the kernel maps for uprobes (Linux 6.1 to 6.18, kernel/events/uprobes.c, xol_add_vma() and
 * uprobe_get_trampoline_vaddr()). A program's call instruction hardly ever ends on a page boundary.
 */
#define PAGE_OFFSET_MASK 0xfffu

uint64_t call_caller_of(const struct perf_sample *sample)
{
	return (sample->caller & PAGE_OFFSET_MASK) ? sample->caller : 0;
}

struct open_call *call_stack_push(struct call_stack *stack, const struct perf_sample *sample,
				  const struct heap_op *op)
{
	const struct open_call *before = call_stack_top(stack);
	struct open_call *call = &stack->calls[stack->depth++];

	/*
	 * Sets the fields one by one. Clearing the rest, which is not used yet, takes longer than
	 * all else.
	 */
	call->schema = sample->event->schema;
	memcpy(call->args, sample->args, sizeof(call->args));
	call->caller = call_caller_of(sample);
	call->is_jumped_to =
		stack->entered_last && before && before->caller && before->caller == call->caller;
	call->is_inner = before && call_is_inside(before, call->caller);
	call->probe_address = sample->probe_address;
	call->op = *op;
	call->entry_seen = true;
	call->stored = false;
	call->stored_block = 0;
	call->released = false;
	call->nr_inner = 0;
	call->inner_failure = ANOMALY_NONE;
	return call;
}

struct open_call *call_stack_top(struct call_stack *stack)
{
	return stack->depth > 0 ? &stack->calls[stack->depth - 1] : NULL;
}

void call_stack_remove_bottom(struct call_stack *stack)
{
	stack->depth--;
	memmove(&stack->calls[0], &stack->calls[1], (size_t)stack->depth * sizeof(stack->calls[0]));
}

uint64_t call_return_of(const struct perf_sample *sample)
{
	uint64_t address = sample->return_address;

	return sample->event->point != PROBE_EXIT || (address & PAGE_OFFSET_MASK) ? address : 0;
}

bool call_exit_may_end(uint64_t caller, uint64_t return_address, bool is_newest)
{
	return caller && return_address ? caller == return_address : is_newest;
}

static int match_exit(const struct call_stack *stack, const struct perf_sample *sample)
{
	uint64_t return_address = call_return_of(sample);

	for (int i = stack->depth - 1; i >= 0; i--) {
		const struct open_call *call = &stack->calls[i];

		if (call->schema == sample->event->schema &&
		    call->probe_address == sample->probe_address &&
		    call_exit_may_end(call->caller, return_address, i == stack->depth - 1))
			return i;
	}
	return -1;
}

int call_stack_match(const struct call_stack *stack, const struct perf_sample *sample)
{
	const struct probe_schema *schema = sample->event->schema;
	uint64_t return_address = sample->return_address;

	if (sample->event->point == PROBE_EXIT)
		return match_exit(stack, sample);
	for (int i = stack->depth - 1; i >= 0; i--) {
		const struct open_call *call = &stack->calls[i];

		if (call->schema != schema)
			continue;
		if (!call->caller || !return_address || call->caller == return_address)
			return i;
	}
	return -1;
}

/* The address of the instruction. */
static uint64_t exit_address(const struct perf_sample *sample)
{
	return sample->probe_address + sample->args[0];
}

void call_stack_note_event(struct call_stack *stack, const struct perf_sample *sample)
{
	stack->entered_last = sample->event->point == PROBE_ENTRY &&
			      probe_schema_has_return(sample->event->schema);
	if (sample->event->point != PROBE_EXIT)
		stack->last_exit.at = 0;
}

void call_stack_note_exit(struct call_stack *stack, const struct perf_sample *sample,
			  const struct open_call *call)
{
	stack->last_exit.at = exit_address(sample);
	stack->last_exit.return_address = sample->return_address;
	stack->last_exit.was_jumped_to = call->is_jumped_to;
}

bool call_stack_has_exit(const struct call_stack *stack, const struct perf_sample *sample)
{
	bool is_same = stack->last_exit.at == exit_address(sample) &&
		       stack->last_exit.return_address == sample->return_address;
	int index = call_stack_match(stack, sample);

	if (is_same && (!stack->last_exit.was_jumped_to || index != stack->depth - 1))
		return false;
	return index >= 0;
}

bool call_is_near(uint64_t address, uint64_t probe_address)
{
	return address - probe_address + NEAR_BYTES - 1 < 2 * NEAR_BYTES - 1;
}

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

bool call_is_from(uint64_t caller, uint64_t outer_probe, uint64_t outer_caller)
{
	return call_is_near(caller, outer_probe) &&
	       (!outer_caller ||
		distance(caller, outer_probe) <= 2 * distance(caller, outer_caller));
}

bool call_is_inside(const struct open_call *outer, uint64_t caller)
{
	if (!caller || !outer->probe_address || caller == outer->caller)
		return true;
	return call_is_from(caller, outer->probe_address, outer->is_inner ? 0 : outer->caller);
}

bool call_stack_jumps_to(const struct call_stack *stack, uint64_t return_address)
{
	int i = stack->depth - 1;

	/* A call that was jumped to returns where the next one does. */
	while (i >= 0 && !stack->calls[i].caller)
		i--;
	return i >= 0 && stack->calls[i].caller == return_address;
}

bool call_stack_has_frame(const struct call_stack *stack, uint64_t address, uint64_t caller)
{
	for (int i = 0; i < stack->depth; i++) {
		const struct open_call *call = &stack->calls[i];

		if (!call->caller ||
		    (call->caller == caller &&
		     (!call->probe_address || call_is_near(address, call->probe_address))))
			return true;
	}
	return false;
}

bool call_add_inner(struct open_call *call, uint64_t address, uint64_t sequence)
{
	if (call->nr_inner == CALL_MAX_INNER)
		return false;
	call->inner[call->nr_inner++] = (struct inner_block){address, sequence};
	return true;
}
