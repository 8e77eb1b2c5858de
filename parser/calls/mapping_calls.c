/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/calls/mapping_calls.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

/* Results from -MAX_ERRNO on are errors (include/linux/err.h). */
#define MAX_ERRNO 4095

/* The smallest size of a page. With larger pages, ranges are rounded too little. */
#define PAGE_BYTES 4096ULL

enum mmap_arg { MMAP_ADDR, MMAP_LEN, MMAP_PROT, MMAP_FLAGS };
enum munmap_arg { MUNMAP_ADDR, MUNMAP_LEN };
enum brk_arg { BRK_ADDR, BRK_OLD };
enum mremap_arg { MREMAP_ADDR, MREMAP_OLD_LEN, MREMAP_NEW_LEN, MREMAP_FLAGS, MREMAP_NEW_ADDR };

/* The entry or exit of a system call on its way to the map. */
struct step {
	struct heap_sink *sink;
	struct region_map *map;
	struct mapping_call *call;
	struct heap_op op;
	enum mapping_owner owner; /* of what is mapped */
	bool is_below_allocator;
};

static struct site_block site_block_of_region(const struct region *region)
{
	return (struct site_block){
		.stack_id = region->mapped.stack_id,
		.size_bytes = region->end - region->start,
		.time_ns = region->mapped.time_ns,
	};
}

static const struct resource_kind *kind_of(const struct step *step)
{
	return step->call->syscall->call.kind;
}

static void emit(const struct step *step, bool enters, const struct region *region)
{
	const struct heap_block block = region_block(region);

	if (!region->is_own)
		heap_sink_tell(step->sink, enters, &block, &step->op);
}

/* The counts of all mappings. */
static struct resource_counts *counts_of(const struct step *step)
{
	struct resource_counts *counts = &step->sink->resources[kind_of(step)->number - 1];

	counts->kind = kind_of(step);
	return counts;
}

/* Inherited mappings are the parent's, and the allocator's consist of its blocks. */
static bool counts(const struct region *region)
{
	return !region->inherited && !region->is_own;
}

static int note_enter(const struct step *step, const struct region *region)
{
	const struct site_block block = site_block_of_region(region);

	emit(step, true, region);
	if (!region->is_own)
		counts_of(step)->gives++;
	return counts(region) ? site_stats_enter(step->sink->sites, &block) : 0;
}

/* Undoes note_enter(). */
static void note_withdraw(const struct step *step, const struct region *region)
{
	const struct site_block block = site_block_of_region(region);

	emit(step, false, region);
	if (!region->is_own)
		counts_of(step)->gives--;
	if (counts(region))
		site_stats_withdraw(step->sink->sites, &block);
}

static int note_leave(const struct step *step, const struct region *region)
{
	const struct site_block block = site_block_of_region(region);

	emit(step, false, region);
	if (!region->is_own)
		counts_of(step)->takes++;
	return counts(region) ? site_stats_leave(step->sink->sites, &block, step->op.time_ns) : 0;
}

/* Undoes note_leave() at the call's entry. */
static void note_unleave(const struct step *step, const struct region *region)
{
	const struct site_block block = site_block_of_region(region);

	emit(step, true, region);
	if (!region->is_own)
		counts_of(step)->takes--;
	if (counts(region))
		site_stats_unleave(step->sink->sites, &block, step->call->op.time_ns);
}

static struct region part_of(const struct region *whole, uint64_t start, uint64_t end)
{
	struct region part = *whole;

	part.start = start;
	part.end = end;
	return part;
}

/*
 * Counts as if the parts had been mapped one by one, and one of them were unmapped now. Of an
 * inherited mapping, only the unmapped part is told.
 */
static int note_cut(const struct step *step, const struct region_cut *cut)
{
	const struct region *whole = &cut->whole;
	const struct region left = part_of(whole, whole->start, cut->start);
	const struct region right = part_of(whole, cut->end, whole->end);
	const struct region piece = part_of(whole, cut->start, cut->end);
	bool has_left = left.start < left.end, has_right = right.start < right.end;
	int err = 0;

	if ((has_left || has_right) && !whole->inherited) {
		note_withdraw(step, whole);
		if (has_left)
			err = note_enter(step, &left);
		if (has_right && !err)
			err = note_enter(step, &right);
		if (!err)
			err = note_enter(step, &piece);
	}
	return err ? err : note_leave(step, &piece);
}

static int undo_cut(const struct step *step, const struct region_cut *cut)
{
	struct region_join join;
	int err = region_map_put_back(step->map, cut, &join);

	if (err || !join.nr_parts)
		return err;
	note_unleave(step, &join.parts[0]);
	if (join.nr_parts == 1 || join.whole.inherited)
		return 0;
	for (int i = 0; i < join.nr_parts; i++)
		note_withdraw(step, &join.parts[i]);
	return note_enter(step, &join.whole);
}

/* Unmaps a range. */
static int unmap(struct step *step, uint64_t start, uint64_t end)
{
	struct region_cuts *cuts = &step->call->cuts;
	size_t first = cuts->nr;
	int err = region_map_remove(step->map, start, end, cuts);

	for (size_t i = first; i < cuts->nr && !err; i++)
		err = note_cut(step, &cuts->list[i]);
	return err;
}

/*
 * Frame pointers often show too few frames. The open calls help then, unless longjmp() has left
 * them, and so does the way in which glibc maps a thread's stack (nptl/allocatestack.c, 2.36),
 * which hardly any program uses.
 */
static bool is_own(const struct step *step)
{
	const uint64_t *args = step->call->args;
	bool is_thread_stack = step->call->syscall->number == SYS_mmap &&
			       args[MMAP_PROT] == PROT_NONE && args[MMAP_FLAGS] & MAP_STACK;

	return step->owner == MAPPING_IS_OWN ||
	       (step->owner != MAPPING_IS_RANKED &&
		((step->is_below_allocator && step->owner != MAPPING_IS_SURELY_PROGRAMS) ||
		 is_thread_stack));
}

/* The call of @step has mapped [@start, @end). */
static int map(struct step *step, uint64_t start, uint64_t end)
{
	const struct region region = {
		.start = start,
		.end = end,
		.is_own = is_own(step),
		.mapped = step->op,
	};
	int err;

	if (start >= end)
		return 0;
	/* MAP_FIXED, or a missed munmap. */
	err = unmap(step, start, end);
	if (!err)
		err = region_map_add(step->map, &region);
	return err ? err : note_enter(step, &region);
}

/* The end of a range of whole pages. 0: the kernel rejects such a range. */
static uint64_t end_of(uint64_t start, uint64_t len)
{
	uint64_t end;

	if (start % PAGE_BYTES || !len || __builtin_add_overflow(start, len, &end) ||
	    end > UINT64_MAX - PAGE_BYTES)
		return 0;
	return (end + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
}

/* The part of the old range that a successful mremap unmaps. */
static void old_range(const uint64_t *args, uint64_t *ret_start, uint64_t *ret_end)
{
	uint64_t start = args[MREMAP_ADDR], new_end;

	*ret_start = start;
	*ret_end = end_of(start, args[MREMAP_OLD_LEN]);
	new_end = end_of(start, args[MREMAP_NEW_LEN]);
	if (args[MREMAP_FLAGS] & MREMAP_DONTUNMAP)
		*ret_end = 0;
	else if (!(args[MREMAP_FLAGS] & MREMAP_FIXED) && new_end && new_end <= *ret_end)
		*ret_start = new_end; /* it shrinks in place */
}

/* True if mremap keeps the whole old range, which begins at @old_start, in place. */
static bool stays(const uint64_t *args, uint64_t old_start)
{
	return !(args[MREMAP_FLAGS] & MREMAP_MAYMOVE) && old_start == args[MREMAP_ADDR];
}

static int enter_call(struct step *step)
{
	const uint64_t *args = step->call->args;
	uint64_t start = args[MUNMAP_ADDR], end = 0;

	if (step->call->syscall->number == SYS_munmap) {
		end = end_of(start, args[MUNMAP_LEN]);
	} else if (step->call->syscall->number == SYS_mremap) {
		old_range(args, &start, &end);
		if (stays(args, start))
			return 0;
	}
	return end > start ? unmap(step, start, end) : 0;
}

static int fail_call(struct step *step)
{
	struct region_cuts *cuts = &step->call->cuts;
	int err = 0;

	counts_of(step)->failures += step->call->syscall->gives;
	for (size_t i = cuts->nr; i-- > 0 && !err;)
		err = undo_cut(step, &cuts->list[i]);
	return err;
}

/*
 * From now on the mapping belongs to this call, as a block does to realloc(). A mapping from before
 * the recording counts only by its growth.
 */
static int finish_mremap(struct step *step, uint64_t ret)
{
	const uint64_t *args = step->call->args;
	uint64_t end = end_of(ret, args[MREMAP_NEW_LEN]), start = ret, old_start, old_end;
	uint64_t old_len = args[MREMAP_OLD_LEN];
	int err = 0;

	old_range(args, &old_start, &old_end);
	if (old_end > old_start && stays(args, old_start))
		err = unmap(step, old_start, old_end);
	/* Shrunk or unchanged. */
	if (err || (ret == args[MREMAP_ADDR] && old_start != args[MREMAP_ADDR]))
		return err;
	if (!step->call->cuts.nr && old_len && !(args[MREMAP_FLAGS] & MREMAP_DONTUNMAP)) {
		start = end_of(ret, old_len);
		/* The mappings at the new address are gone, known or not. */
		err = unmap(step, ret, start < end ? start : end);
	}
	return err || !start || !end ? err : map(step, start, end);
}

/* Each growth of the break is a region of its own call. Shrinking removes the end. */
static int finish_brk(struct step *step, uint64_t ret)
{
	uint64_t before = step->call->args[BRK_OLD];
	int err = 0;

	/* If the old break is not recorded, an earlier call tells it. */
	if (!before)
		before = region_map_break(step->map);
	region_map_set_break(step->map, ret);
	if (!before || ret == before)
		return 0;
	if (ret > before)
		err = map(step, before, ret);
	else
		err = unmap(step, ret, before);
	return err;
}

static int finish_call(struct step *step, uint64_t ret)
{
	const uint64_t *args = step->call->args;

	switch (step->call->syscall->number) {
	case SYS_mmap:
		return map(step, ret, end_of(ret, args[MMAP_LEN]));
	case SYS_mremap:
		return finish_mremap(step, ret);
	case SYS_brk:
		return finish_brk(step, ret);
	default:
		return 0;
	}
}

static int handle_enter(struct step *step, const struct perf_sample *sample)
{
	struct mapping_call *call = step->call;

	/* If an exit was lost, its call's unmapping is final. */
	region_cuts_deinit(&call->cuts);
	call->syscall = sample->event->syscall;
	memcpy(call->args, sample->args, sizeof(call->args));
	call->op = step->op;
	return enter_call(step);
}

static int handle_exit(struct step *step, const struct perf_sample *sample)
{
	struct mapping_call *call = step->call;
	int err = 0;

	/* The entry was lost or came before the recording. */
	if (!call->syscall || call->syscall != sample->event->syscall)
		return 0;
	if (sample->ret >= (uint64_t)-MAX_ERRNO)
		err = fail_call(step);
	else
		err = finish_call(step, sample->ret);
	region_cuts_deinit(&call->cuts);
	call->syscall = NULL;
	return err;
}

/* True if the thread is in an allocator's function whose entry was recorded. */
static bool is_below_allocator(const struct thread *thread)
{
	return thread->calls && thread->calls->depth > 0;
}

int mapping_calls_handle(struct heap_sink *sink, struct thread *thread, struct region_map *map,
			 const struct perf_sample *sample, uint32_t stack_id,
			 enum mapping_owner owner)
{
	struct step step = {
		.sink = sink,
		.map = map,
		.op = heap_op_of(thread, sample, &sample->event->syscall->call.schema, stack_id),
		.owner = owner,
		.is_below_allocator = is_below_allocator(thread),
	};

	sink->stats.events++;
	if (!thread->mapping_call)
		thread->mapping_call = calloc(1, sizeof(*thread->mapping_call));
	if (!thread->mapping_call)
		return -ENOMEM;
	step.call = thread->mapping_call;
	return sample->event->is_syscall_exit ? handle_exit(&step, sample)
					      : handle_enter(&step, sample);
}
