/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/analysis/sample_stacks.h"

#include <string.h>

static bool is_incomplete(const struct perf_sample *sample)
{
	size_t nr = sample->nr_callchain;

	return nr > 1 && sample->callchain[nr - 1] <= STACK_INCOMPLETE;
}

/* Interns the @nr innermost @frames (an array of STACK_MAX_FRAMES) and the @nr_rest others. */
static inline __attribute__((always_inline)) int add_joined(struct stack_store *stacks, pid_t pid,
							    uint64_t *frames, size_t nr,
							    const uint64_t *rest, size_t nr_rest,
							    uint32_t *ret_id)
{
	if (nr_rest > STACK_MAX_FRAMES - nr)
		nr_rest = STACK_MAX_FRAMES - nr;
	if (nr_rest)
		memcpy(frames + nr, rest, nr_rest * sizeof(*frames));
	if (nr + nr_rest == STACK_MAX_FRAMES)
		frames[STACK_MAX_FRAMES - 1] = STACK_TRUNCATED;
	return stack_store_add_callchain(stacks, pid, frames, nr + nr_rest, ret_id);
}

/*
 * Without a callchain, the function and its caller's address make a short one.
 *
 * A callchain at a return starts with the return address. At an entry or an exit it starts with the
 * probed instruction. The frame pointer is still the caller's there, so the kernel's walk misses
 * the caller (before Linux 6.12; since then only if the function does not begin with endbr64 or
 * push %rbp). leakrec's recordings hold the caller's address.
 */
static int add_callchain(struct stack_store *stacks, const struct perf_sample *sample,
			 uint32_t *ret_id)
{
	enum probe_point point = sample->event->point;
	uint64_t frames[STACK_MAX_FRAMES];
	const uint64_t *rest = sample->callchain;
	size_t nr = 0, nr_rest = sample->nr_callchain;
	uint64_t caller = sample->caller;

	if (sample->whole_chain)
		return stack_store_add_callchain(stacks, sample->origin.pid, sample->callchain,
						 sample->nr_callchain, ret_id);
	frames[nr++] = sample->probe_address;
	if (probe_point_is_return(point))
		caller = sample->return_address;
	if (nr_rest && (!probe_point_is_return(point) || point == PROBE_EXIT)) {
		rest++;
		nr_rest--;
	}
	if (caller && (!nr_rest || rest[0] != caller))
		frames[nr++] = caller;
	return add_joined(stacks, sample->origin.pid, frames, nr, rest, nr_rest, ret_id);
}

static int add_dump(struct stack_store *stacks, const struct perf_sample *sample, uint32_t *ret_id)
{
	struct stack_dump dump = sample->dump;

	if (probe_point_is_return(sample->event->point))
		dump.returned_from = sample->probe_address;
	dump.is_returning = sample->event->point == PROBE_EXIT;
	return stack_store_add_dump(stacks, sample->origin.pid, &dump, ret_id);
}

int sample_stacks_add_call(struct stack_store *stacks, const struct perf_sample *sample,
			   uint64_t *incomplete, uint32_t *ret_id)
{
	if (sample->has_dump)
		return add_dump(stacks, sample, ret_id);
	*incomplete += is_incomplete(sample);
	return add_callchain(stacks, sample, ret_id);
}

/*
 * The C library's wrapper of a system call has no frame, so frame pointers miss its caller. The
 * recorded word of the stack may be the return address. The probed function that the thread is in
 * stands for all other missing frames. Without a callchain nothing else is known.
 */
int sample_stacks_add_syscall(struct stack_store *stacks, const struct perf_sample *sample,
			      uint64_t *incomplete, uint32_t *ret_id)
{
	pid_t pid = sample->origin.pid;
	const uint64_t *rest = sample->callchain;
	size_t nr = 0, nr_rest = sample->nr_callchain;
	uint64_t frames[STACK_MAX_FRAMES], caller = sample->caller;

	if (sample->has_dump)
		return stack_store_add_dump(stacks, pid, &sample->dump, ret_id);
	*incomplete += is_incomplete(sample);
	if (nr_rest) {
		frames[nr++] = *rest++;
		nr_rest--;
	} else if ((int64_t)sample->ip > 0) {
		frames[nr++] = sample->ip;
	}
	if (caller && nr && !(nr_rest && rest[0] == caller) &&
	    stack_store_is_code(stacks, pid, caller))
		frames[nr++] = caller;
	if (nr && sample->inside)
		frames[nr++] = sample->inside + 1; /* as if it returned there */
	return add_joined(stacks, pid, frames, nr, rest, nr_rest, ret_id);
}
