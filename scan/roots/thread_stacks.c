/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "scan/roots/thread_stacks.h"

#include <errno.h>
#include <stdlib.h>

/*
 * glibc's struct pthread (nptl/descr.h, 2.31 to 2.42, x86-64) begins with tcbhead_t, whose first
 * and third words are its own address. Behind it, at TCB_BYTES: "list_t list; pid_t tid". Somewhere
 * in it: "void *stackblock; size_t stackblock_size; size_t guardsize".
 */
#define TCB_BYTES	704
#define TID_AT		(TCB_BYTES + 16)
#define CONTROL_BYTES	2304
#define CONTROL_ALIGNED 64
#define MIN_STACK_BYTES 16384 /* PTHREAD_STACK_MIN */
#define MAX_STACK_BYTES (1ull << 40)
#define MAX_ABOVE_BYTES 65536 /* of the stack, from the control block to its end */
#define MAX_LIST	(1u << 20)

static int add(struct thread_stacks *stacks, const struct thread_stack *stack)
{
	size_t nr = stacks->nr;

	if ((nr & (nr - 1)) == 0) {
		struct thread_stack *grown =
			reallocarray(stacks->stacks, nr ? nr * 2 : 1, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		stacks->stacks = grown;
	}
	stacks->stacks[stacks->nr++] = *stack;
	return 0;
}

static bool is_control(const struct snapshot *snapshot, uint64_t address)
{
	uint64_t words[3];

	return address % CONTROL_ALIGNED == 0 &&
	       snapshot_read(snapshot, address, words, sizeof(words)) && words[0] == address &&
	       words[2] == address;
}

/* Finds the stack that the control block is at the end of. */
static bool find_block(const struct snapshot *snapshot, uint64_t control, uint64_t *ret_start,
		       uint64_t *ret_end)
{
	const struct scan_region *region = snapshot_region(snapshot, control);
	const uint8_t *bytes;
	uint64_t size;

	if (!region || !region->bytes)
		return false;
	bytes = region->bytes + (control - region->start);
	size = region->end - control < CONTROL_BYTES ? region->end - control : CONTROL_BYTES;
	for (uint64_t at = TCB_BYTES; at + 24 <= size; at += 8) {
		uint64_t start = load_word(bytes + at), length = load_word(bytes + at + 8),
			 guard = load_word(bytes + at + 16);

		if (!start || start > control || length < MIN_STACK_BYTES ||
		    length > MAX_STACK_BYTES || guard >= length || control - start >= length ||
		    start + length - control > MAX_ABOVE_BYTES)
			continue;
		*ret_start = start;
		*ret_end = start + length;
		return true;
	}
	return false;
}

/* The main thread's stack is a mapping, which the kernel keeps apart from others. */
static bool is_main_stack(const struct snapshot *snapshot, const struct scan_thread *thread,
			  const struct scan_region *region)
{
	if (!region || region->inode)
		return false;
	return snapshot->is_core ? thread->tid == snapshot->pid
				 : strcmp(region->path, "[stack]") == 0;
}

static int add_living(struct thread_stacks *stacks, const struct snapshot *snapshot, size_t i)
{
	const struct scan_thread *thread = &snapshot->threads[i];
	const struct thread_registers *registers = &thread->registers;
	const struct scan_region *region = snapshot_region(snapshot, registers->sp);
	struct thread_stack stack = {.sp = registers->sp, .thread = i};

	if (is_control(snapshot, registers->thread_pointer) &&
	    find_block(snapshot, registers->thread_pointer, &stack.start, &stack.end)) {
		stack.control = registers->thread_pointer;
	} else if (is_main_stack(snapshot, thread, region)) {
		stack.start = region->start;
		stack.end = region->end;
	}
	/* It may run on another stack: of a signal handler, a coroutine. Then all of both counts.
	 */
	return stack.start && stack.sp >= stack.start && stack.sp < stack.end ? add(stacks, &stack)
									      : 0;
}

/* The head of the list that the thread of @control is in, a variable of the libc; 0: in none. */
static uint64_t list_head(const struct snapshot *snapshot, uint64_t control)
{
	uint64_t first = control + TCB_BYTES, node = first, next, links[2], head = 0;

	for (unsigned i = 0; i < MAX_LIST; i++) {
		if (!snapshot_word(snapshot, node, &next) ||
		    !snapshot_read(snapshot, next, links, sizeof(links)) || links[1] != node)
			return 0;
		if (next == first)
			return head;
		if (!is_control(snapshot, next - TCB_BYTES)) {
			if (head)
				return 0;
			head = next;
		}
		node = next;
	}
	return 0;
}

/* The heads of glibc's lists; 0: not known. */
struct list_heads {
	uint64_t used, cached;
};

static void find_heads(const struct snapshot *snapshot, struct list_heads *ret)
{
	*ret = (struct list_heads){0};
	for (size_t i = 0; i < snapshot->nr_threads && !ret->used; i++) {
		uint64_t control = snapshot->threads[i].registers.thread_pointer, start, end, head;

		if (!is_control(snapshot, control))
			continue;
		head = list_head(snapshot, control);
		if (find_block(snapshot, control, &start, &end))
			ret->used = head;
		else if (head)
			/* _dl_stack_used, _dl_stack_user, _dl_stack_cache (ldsodefs.h, 2.34) */
			ret->cached = head + 16;
	}
}

static bool is_living(const struct snapshot *snapshot, uint64_t control)
{
	for (size_t i = 0; i < snapshot->nr_threads; i++)
		if (snapshot->threads[i].registers.thread_pointer == control)
			return true;
	return false;
}

/* Adds the stack of an ended thread whose control block may be at @control. */
static int try_ended(struct thread_stacks *stacks, const struct snapshot *snapshot,
		     const struct list_heads *heads, uint64_t control)
{
	struct thread_stack stack = {.thread = SIZE_MAX, .control = control};
	uint64_t word, head;

	if (!is_control(snapshot, control) || is_living(snapshot, control) ||
	    !snapshot_word(snapshot, control + TID_AT, &word) || (uint32_t)word != 0 ||
	    !find_block(snapshot, control, &stack.start, &stack.end))
		return 0;
	/* In no list: the program gave the thread that memory, and uses it as it likes. */
	head = list_head(snapshot, control);
	if (!head)
		return 0;
	stack.sp = stack.end;
	stack.waits_for_join = !(head == heads->cached || (heads->used && head != heads->used));
	return add(stacks, &stack);
}

static int find_ended(struct thread_stacks *stacks, const struct snapshot *snapshot)
{
	struct list_heads heads;
	int err = 0;

	find_heads(snapshot, &heads);
	for (size_t i = 0; i < snapshot->nr_regions; i++) {
		const struct scan_region *region = &snapshot->regions[i];

		if (!region->bytes || region->inode || region->is_shared || !region->is_writable)
			continue;
		for (size_t j = 0; j < region->nr_runs; j++) {
			const struct page_run *run = &region->runs[j];

			for (uint64_t at = run->start; at + CONTROL_ALIGNED <= run->end && !err;
			     at += CONTROL_ALIGNED)
				if (load_word(region->bytes + (at - region->start)) == at)
					err = try_ended(stacks, snapshot, &heads, at);
		}
	}
	return err;
}

static int compare(const void *a, const void *b)
{
	const struct thread_stack *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->thread < y->thread ? -1 : x->thread > y->thread;
}

/* Of stacks that overlap, which glibc never makes, none is known. */
static void remove_overlapping(struct thread_stacks *stacks)
{
	size_t kept = 0;
	uint64_t end = 0;

	for (size_t i = 0; i < stacks->nr; i++) {
		struct thread_stack *stack = &stacks->stacks[i];

		if (stack->start < end)
			continue;
		end = stack->end;
		stacks->stacks[kept++] = *stack;
	}
	stacks->nr = kept;
}

int thread_stacks_find(struct thread_stacks *ret, const struct snapshot *snapshot)
{
	int err = 0;

	*ret = (struct thread_stacks){0};
	for (size_t i = 0; i < snapshot->nr_threads && !err; i++)
		err = add_living(ret, snapshot, i);
	if (!err)
		err = find_ended(ret, snapshot);
	if (ret->nr)
		qsort(ret->stacks, ret->nr, sizeof(*ret->stacks), compare);
	remove_overlapping(ret);
	return err;
}

void thread_stacks_deinit(struct thread_stacks *stacks)
{
	free(stacks->stacks);
	*stacks = (struct thread_stacks){0};
}
