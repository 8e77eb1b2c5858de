/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/calls/descriptor_calls.h"

#include "parser/calls/resource_calls.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#define CLOSE_RANGE_ONLY_FLAGS 4U   /* CLOSE_RANGE_CLOEXEC, uapi/linux/close_range.h */
#define MAX_ERRNO	       4095 /* include/linux/err.h */

enum dup_arg { DUP_OLD, DUP_NEW };
enum range_arg { RANGE_FIRST, RANGE_LAST, RANGE_FLAGS };

static bool has_failed(const struct perf_sample *sample)
{
	return (int64_t)sample->ret < 0 && (int64_t)sample->ret >= -MAX_ERRNO;
}

static int give(const struct resource_step *step, uint64_t descriptor)
{
	return resource_give(step, (uint32_t)descriptor, 0);
}

/* A descriptor that is not held is no anomaly: many programs close all possible numbers. */
static int release_if_held(const struct resource_step *step, uint64_t descriptor)
{
	uint64_t handle = (uint32_t)descriptor;

	if (!heap_find(step->heap, resource_key(step->call->kind, handle))) {
		resource_counts_of(step)->unknown_takes++;
		return 0;
	}
	return resource_release(step, handle);
}

/* The held descriptors in a range. */
struct range {
	const struct resource_kind *kind;
	uint64_t first, last;
	uint64_t *found;
	size_t nr;
};

static int find_in_range(void *context, const struct heap_block *block)
{
	const struct resource_call *call = resource_call_of(block->allocated.schema);
	struct range *range = context;
	uint64_t handle, *grown;

	if (!call || call->kind != range->kind)
		return 0;
	handle = resource_key(call->kind, block->address);
	if (handle < range->first || handle > range->last)
		return 0;
	grown = reallocarray(range->found, range->nr + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	range->found = grown;
	range->found[range->nr++] = handle;
	return 0;
}

static int close_range_of(const struct resource_step *step, const uint64_t *args)
{
	struct range range = {
		.kind = step->call->kind,
		.first = (uint32_t)args[RANGE_FIRST],
		.last = (uint32_t)args[RANGE_LAST],
	};
	int err;

	if (args[RANGE_FLAGS] & CLOSE_RANGE_ONLY_FLAGS)
		return 0;
	err = heap_for_each(step->heap, find_in_range, &range);
	for (size_t i = 0; i < range.nr && !err; i++)
		err = resource_release(step, range.found[i]);
	free(range.found);
	return err;
}

static int enter(const struct resource_step *step, struct descriptor_call *call)
{
	call->args[0] = step->sample->args[0];
	call->args[1] = step->sample->args[1];
	switch (call->syscall->does) {
	case SYSCALL_CLOSES:
		return release_if_held(step, call->args[0]);
	case SYSCALL_CLOSES_RANGE:
		return close_range_of(step, step->sample->args);
	default:
		return 0;
	}
}

/* dup2(a, a) does nothing. Otherwise the descriptor that had the number is closed. */
static int replace(const struct resource_step *step, const struct descriptor_call *call)
{
	uint64_t number = (uint32_t)step->sample->ret;
	int err = 0;

	if (!call->syscall || (uint32_t)call->args[DUP_OLD] == number)
		return 0;
	if (heap_find(step->heap, resource_key(step->call->kind, number)))
		err = resource_release(step, number);
	return err ? err : give(step, number);
}

/* At the exit of a system call, when its new descriptors are known. */
static int leave(const struct resource_step *step, const struct descriptor_call *call)
{
	const struct perf_sample *sample = step->sample;
	const struct syscall_schema *syscall = sample->event->syscall;
	uint64_t pair = sample->block;
	int err;

	if (has_failed(sample)) {
		resource_counts_of(step)->failures += syscall->gives;
		return 0;
	}
	switch (syscall->does) {
	case SYSCALL_OPENS:
		return give(step, sample->ret);
	case SYSCALL_OPENS_PAIR:
		/* Both are 0 if they were not recorded. */
		if (pair == 0)
			return 0;
		err = give(step, pair & UINT32_MAX);
		return err ? err : give(step, pair >> 32);
	case SYSCALL_REPLACES:
		return replace(step, call);
	case SYSCALL_MAY_DUP:
		if (!call->syscall ||
		    (call->args[1] != F_DUPFD && call->args[1] != F_DUPFD_CLOEXEC))
			return 0;
		return give(step, sample->ret);
	default:
		return 0;
	}
}

int descriptor_calls_handle(struct heap_sink *sink, struct thread *thread, struct heap *heap,
			    const struct perf_sample *sample, uint32_t stack_id)
{
	const struct syscall_schema *syscall = sample->event->syscall;
	struct descriptor_call call = thread->descriptor_call;
	const struct resource_step step = {
		.sink = sink,
		.sample = sample,
		.thread = thread,
		.heap = heap,
		.call = &syscall->call,
		.op = heap_op_of(thread, sample, &syscall->call.schema, stack_id),
	};

	sink->stats.events++;
	/* A vfork child has its parent's memory but its own descriptors, until exec. */
	if (thread->process->heap_pid != thread->process->pid)
		return 0;
	if (sample->event->is_syscall_exit) {
		thread->descriptor_call.syscall = NULL;
		if (call.syscall != syscall)
			call.syscall = NULL;
		return leave(&step, &call);
	}
	thread->descriptor_call.syscall = syscall;
	return enter(&step, &thread->descriptor_call);
}
