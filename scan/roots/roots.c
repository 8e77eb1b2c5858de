/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "scan/roots/roots.h"

#include <errno.h>
#include <stdlib.h>

/* Of a thread that is inside malloc() or free(), whose frames are small. */
#define MALLOC_FRAMES_BYTES 4096

#define MAX_LIBCS	    16 /* as many as there are namespaces */

/* A range where no roots are, or other ones than its mapping's: [start, end). */
struct excluded {
	uint64_t start, end;
};

struct building {
	struct roots *roots;
	const struct heap *heap;
	const char *libcs[MAX_LIBCS]; /* the paths of files that have a main arena */
	size_t nr_libcs;
	struct excluded *excluded; /* by start */
	size_t nr_excluded;
	size_t nr_values;
};

struct thread_sp {
	uint64_t sp;
	size_t nr;
};

static int add(struct roots *roots, const struct root_range *range)
{
	size_t nr = roots->nr;

	if (!range->size_bytes)
		return 0;
	if ((nr & (nr - 1)) == 0) {
		struct root_range *grown =
			reallocarray(roots->ranges, nr ? nr * 2 : 1, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		roots->ranges = grown;
	}
	roots->ranges[nr] = *range;
	roots->ranges[nr].first_slot = roots->nr_slots;
	roots->nr_slots += (range->size_bytes + 7) / 8;
	roots->nr++;
	return 0;
}

/* Adds memory of the process: [start, end). */
static int add_memory(struct building *building, enum root_kind kind, uint64_t start, uint64_t end,
		      size_t owner, bool has_chunks)
{
	const uint8_t *bytes;

	start = (start + 7) & ~7ull;
	end &= ~7ull;
	if (start >= end)
		return 0;
	bytes = snapshot_bytes(building->roots->snapshot, start, end - start);
	if (!bytes)
		return 0;
	return add(building->roots, &(struct root_range){
					    .kind = kind,
					    .address = start,
					    .bytes = bytes,
					    .size_bytes = end - start,
					    .owner = owner,
					    .has_chunks = has_chunks,
				    });
}

static int add_values(struct building *building, enum root_kind kind, const uint64_t *values,
		      size_t nr, size_t owner, bool has_chunks)
{
	uint64_t *to = building->roots->values + building->nr_values;

	memcpy(to, values, nr * sizeof(*values));
	building->nr_values += nr;
	return add(building->roots, &(struct root_range){
					    .kind = kind,
					    .bytes = (const uint8_t *)to,
					    .size_bytes = nr * sizeof(*values),
					    .owner = owner,
					    .has_chunks = has_chunks,
				    });
}

/*
 * True if the thread may be in the allocator: it runs code of the libc, and if it is in a system
 * call, in one that malloc() and free() make.
 */
static bool may_be_in_malloc(const struct building *building, const struct scan_thread *thread)
{
	/* x86-64: mmap, mprotect, munmap, brk, mremap, madvise, futex */
	static const int64_t calls[] = {9, 10, 11, 12, 25, 28, 202};
	const struct scan_region *code =
		snapshot_region(building->roots->snapshot, thread->registers.pc);
	bool in_call = thread->registers.syscall >= 0;

	if (!code || !code->has_file)
		return false;
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (thread->registers.syscall == calls[i])
			in_call = false;
	if (in_call)
		return false;
	for (size_t i = 0; i < building->nr_libcs; i++)
		if (strcmp(building->libcs[i], code->path) == 0)
			return true;
	return false;
}

static void list_libcs(struct building *building)
{
	const struct heap *heap = building->heap;

	for (size_t i = 0; i < heap->nr_arenas && building->nr_libcs < MAX_LIBCS; i++) {
		const struct scan_region *data =
			snapshot_region(heap->snapshot, heap->arenas[i].address);

		if (data && data->has_file)
			building->libcs[building->nr_libcs++] = data->path;
	}
}

static int add_thread(struct building *building, size_t i)
{
	const struct snapshot *snapshot = building->roots->snapshot;
	const struct scan_thread *thread = &snapshot->threads[i];
	const struct thread_registers *registers = &thread->registers;
	bool has_chunks = may_be_in_malloc(building, thread);
	uint64_t values[THREAD_MAX_GENERAL] = {0}, dtv;
	int err;

	for (size_t j = 0; j < registers->nr_general; j++)
		values[j] = registers->general[j].value;
	err = add_values(building, ROOT_REGISTER, values, registers->nr_general, i, has_chunks);
	if (!err && registers->vector)
		err = add(building->roots, &(struct root_range){
						   .kind = ROOT_VECTOR,
						   .bytes = registers->vector,
						   .size_bytes = registers->vector_bytes & ~7ull,
						   .owner = i,
					   });
	/* A word of tcbhead_t points behind the first entry of the table. */
	if (!err && snapshot_word(snapshot, registers->thread_pointer + THREAD_DTV_AT, &dtv)) {
		dtv -= 16;
		err = add_values(building, ROOT_DTV, &dtv, 1, i, false);
	}
	return err;
}

static int add_kernel_pointers(struct building *building)
{
	const struct snapshot *snapshot = building->roots->snapshot;
	int err = 0;

	for (size_t i = 0; i < snapshot->nr_kernel_pointers && !err; i++)
		err = add_values(building, ROOT_KERNEL, &snapshot->kernel_pointers[i].value, 1, i,
				 false);
	return err;
}

static int add_stack(struct building *building, const struct thread_stack *stack)
{
	const struct snapshot *snapshot = building->roots->snapshot;
	uint64_t frames, dtv, red_zone = stack->sp - stack->start;
	bool has_chunks;
	int err;

	if (stack->thread == SIZE_MAX) {
		err = stack->waits_for_join ? add_memory(building, ROOT_THREAD, stack->control,
							 stack->end, 0, false)
					    : 0;
		/* Until the join it is the thread's, then the next thread on this stack uses it. */
		if (err || !snapshot_word(snapshot, stack->control + 8, &dtv))
			return err;
		dtv -= 16;
		return add_values(building, ROOT_DTV, &dtv, 1, SIZE_MAX, false);
	}
	if (red_zone > THREAD_RED_ZONE)
		red_zone = THREAD_RED_ZONE;
	has_chunks = may_be_in_malloc(building, &snapshot->threads[stack->thread]);
	frames = has_chunks && stack->end - stack->sp > MALLOC_FRAMES_BYTES
			 ? stack->sp + MALLOC_FRAMES_BYTES
			 : stack->end;
	err = add_memory(building, ROOT_STACK, stack->sp, frames, stack->thread, has_chunks);
	if (!err)
		err = add_memory(building, ROOT_STACK, frames, stack->end, stack->thread, false);
	if (!err)
		err = add_memory(building, ROOT_RED_ZONE, stack->sp - red_zone, stack->sp,
				 stack->thread, has_chunks);
	return err;
}

/* A thread that runs on memory in the heap, such as a coroutine's stack; up to @limit. */
static int add_stack_in_heap(struct building *building, const struct thread_sp *thread,
			     uint64_t limit)
{
	uint64_t offset, end;
	struct heap_block_view view;
	uint32_t block = heap_find_block(building->heap, thread->sp, &offset);

	if (block == HEAP_NONE)
		return 0;
	heap_block_view(building->heap, block, &view);
	end = view.address + view.size_bytes;
	return add_memory(building, ROOT_STACK, thread->sp, end < limit ? end : limit, thread->nr,
			  false);
}

static int compare_sps(const void *a, const void *b)
{
	const struct thread_sp *x = a, *y = b;

	return x->sp < y->sp ? -1 : x->sp > y->sp;
}

/* Of several threads in one block, each has what is below the next: nothing is there twice. */
static int add_stacks_in_heap(struct building *building)
{
	const struct snapshot *snapshot = building->roots->snapshot;
	size_t nr = snapshot->nr_threads;
	struct thread_sp *threads = calloc(nr + 1, sizeof(*threads));
	int err = threads ? 0 : -ENOMEM;

	for (size_t i = 0; i < nr && !err; i++)
		threads[i] = (struct thread_sp){snapshot->threads[i].registers.sp, i};
	if (!err)
		qsort(threads, nr, sizeof(*threads), compare_sps);
	for (size_t i = 0; i < nr && !err; i++)
		err = add_stack_in_heap(building, &threads[i],
					i + 1 < nr ? threads[i + 1].sp : UINT64_MAX);
	free(threads);
	return err;
}

static int compare_excluded(const void *a, const void *b)
{
	const struct excluded *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static int list_excluded(struct building *building)
{
	const struct heap *heap = building->heap;
	const struct thread_stacks *stacks = &building->roots->stacks;
	size_t nr = 0;

	building->excluded = calloc(heap->map.nr_segments + heap->nr_own + stacks->nr + 1,
				    sizeof(*building->excluded));
	if (!building->excluded)
		return -ENOMEM;
	for (size_t i = 0; i < heap->map.nr_segments; i++)
		building->excluded[nr++] =
			(struct excluded){heap->map.segments[i].start, heap->map.segments[i].end};
	for (size_t i = 0; i < heap->nr_own; i++)
		building->excluded[nr++] = (struct excluded){heap->own[i].start, heap->own[i].end};
	for (size_t i = 0; i < stacks->nr; i++)
		building->excluded[nr++] =
			(struct excluded){stacks->stacks[i].start, stacks->stacks[i].end};
	qsort(building->excluded, nr, sizeof(*building->excluded), compare_excluded);
	building->nr_excluded = nr;
	return 0;
}

/* Adds what is not excluded of [start, end), from the excluded range *@next on. */
static int add_rest(struct building *building, enum root_kind kind, size_t region, uint64_t start,
		    uint64_t end, size_t *next)
{
	int err = 0;

	while (start < end && !err) {
		const struct excluded *excluded = &building->excluded[*next];
		bool has_one = *next < building->nr_excluded;

		if (has_one && excluded->end <= start) {
			(*next)++;
			continue;
		}
		if (!has_one || excluded->start >= end)
			return add_memory(building, kind, start, end, region, false);
		if (excluded->start > start)
			err = add_memory(building, kind, start, excluded->start, region, false);
		start = excluded->end;
	}
	return err;
}

static int add_regions(struct building *building)
{
	const struct snapshot *snapshot = building->roots->snapshot;
	size_t next = 0;
	int err = 0;

	for (size_t i = 0; i < snapshot->nr_regions; i++) {
		const struct scan_region *region = &snapshot->regions[i];
		enum root_kind kind =
			region->has_code || (region->is_executable && !region->has_file)
				? ROOT_CODE
				: ROOT_DATA;

		for (size_t j = 0; region->bytes && j < region->nr_runs && !err; j++)
			err = add_rest(building, kind, i, region->runs[j].start,
				       region->runs[j].end, &next);
	}
	return err;
}

static int build(struct building *building)
{
	struct roots *roots = building->roots;
	const struct snapshot *snapshot = roots->snapshot;
	int err;

	roots->values = calloc(snapshot->nr_threads * (THREAD_MAX_GENERAL + 1) + roots->stacks.nr +
				       snapshot->nr_kernel_pointers + 1,
			       sizeof(*roots->values));
	if (!roots->values)
		return -ENOMEM;
	list_libcs(building);
	err = list_excluded(building);
	/* The order decides which of several holders is named: the most telling one first. */
	if (!err)
		err = add_regions(building);
	if (!err)
		err = add_kernel_pointers(building);
	for (size_t i = 0; i < roots->stacks.nr && !err; i++)
		err = add_stack(building, &roots->stacks.stacks[i]);
	if (!err)
		err = add_stacks_in_heap(building);
	for (size_t i = 0; i < snapshot->nr_threads && !err; i++)
		err = add_thread(building, i);
	return err;
}

int roots_init(struct roots *ret, const struct heap *heap, struct thread_stacks *stacks)
{
	struct building building = {.roots = ret, .heap = heap};
	int err;

	*ret = (struct roots){.snapshot = heap->snapshot, .stacks = *stacks};
	*stacks = (struct thread_stacks){0};
	err = build(&building);
	free(building.excluded);
	return err;
}

void roots_deinit(struct roots *roots)
{
	free(roots->ranges);
	free(roots->values);
	thread_stacks_deinit(&roots->stacks);
	*roots = (struct roots){0};
}

const struct root_range *roots_range_of(const struct roots *roots, uint64_t slot)
{
	size_t low = 0, high = roots->nr;

	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (roots->ranges[middle].first_slot <= slot)
			low = middle;
		else
			high = middle;
	}
	return &roots->ranges[low];
}
