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

#define UNSEEN		UINT64_MAX /* a control block whose list was not followed yet */

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
	const uint8_t *bytes = address % CONTROL_ALIGNED
				       ? NULL
				       : snapshot_bytes(snapshot, address, 3 * sizeof(address));

	return bytes && load_word(bytes) == address && load_word(bytes + 16) == address;
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
	if (!region || region->has_file)
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

/* What may be the control block of a thread. */
struct control {
	uint64_t address;
	uint64_t head; /* of the list that it is in, a variable of the libc; 0: in none */
	bool is_living;
};

struct controls {
	struct control *controls; /* by address */
	size_t nr;
};

static int add_control(struct controls *controls, uint64_t address, bool is_living)
{
	size_t nr = controls->nr;

	if ((nr & (nr - 1)) == 0) {
		struct control *grown =
			reallocarray(controls->controls, nr ? nr * 2 : 1, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		controls->controls = grown;
	}
	controls->controls[controls->nr++] = (struct control){address, UNSEEN, is_living};
	return 0;
}

static int search_run(struct controls *controls, const struct snapshot *snapshot,
		      const struct scan_region *region, const struct page_run *run)
{
	uint64_t at = run->start, start, end;
	int err = 0;

	while (at + CONTROL_ALIGNED <= run->end && !err) {
		if (load_word(region->bytes + (at - region->start)) == at &&
		    is_control(snapshot, at) && find_block(snapshot, at, &start, &end)) {
			err = add_control(controls, at, false);
			at += TCB_BYTES;
		} else {
			at += CONTROL_ALIGNED;
		}
	}
	return err;
}

static int compare_addresses(const void *a, const void *b)
{
	const struct control *x = a, *y = b;

	return (x->address > y->address) - (x->address < y->address);
}

/* Of two with one address, that of a living thread comes first. */
static int compare_controls(const void *a, const void *b)
{
	const struct control *x = a, *y = b;
	int order = compare_addresses(a, b);

	return order ? order : y->is_living - x->is_living;
}

static int find_controls(struct controls *controls, const struct snapshot *snapshot)
{
	size_t kept = 0;
	int err = 0;

	for (size_t i = 0; i < snapshot->nr_threads && !err; i++)
		if (is_control(snapshot, snapshot->threads[i].registers.thread_pointer))
			err = add_control(controls, snapshot->threads[i].registers.thread_pointer,
					  true);
	for (size_t i = 0; i < snapshot->nr_regions; i++) {
		const struct scan_region *region = &snapshot->regions[i];

		if (!region->bytes || region->has_file || region->is_shared || !region->is_writable)
			continue;
		for (size_t j = 0; j < region->nr_runs && !err; j++)
			err = search_run(controls, snapshot, region, &region->runs[j]);
	}
	if (controls->nr)
		qsort(controls->controls, controls->nr, sizeof(*controls->controls),
		      compare_controls);
	for (size_t i = 0; i < controls->nr; i++)
		if (!kept || controls->controls[kept - 1].address != controls->controls[i].address)
			controls->controls[kept++] = controls->controls[i];
	controls->nr = kept;
	return err;
}

static struct control *find_control(const struct controls *controls, uint64_t address)
{
	const struct control key = {.address = address};

	return controls->nr ? bsearch(&key, controls->controls, controls->nr, sizeof(key),
				      compare_addresses)
			    : NULL;
}

/*
 * Follows the list from @first, a control block, and notes @label as the head of its threads.
 * Returns the head; 0: it is no ring, or has not one head. As each node is the one before the next,
 * no two lists have a node in common, and the work of all calls is about the number of nodes.
 */
static uint64_t follow(const struct controls *controls, const struct snapshot *snapshot,
		       uint64_t first, uint64_t label)
{
	uint64_t node = first + TCB_BYTES, head = 0;

	do {
		struct control *control = find_control(controls, node - TCB_BYTES);
		const uint8_t *links = snapshot_bytes(snapshot, node, 2 * sizeof(node)), *next;

		/* Here another call has ended. */
		if (control && control->head == label)
			return 0;
		if (control)
			control->head = label;
		else if (!is_control(snapshot, node - TCB_BYTES)) {
			if (head)
				return 0;
			head = node;
		}
		next = links ? snapshot_bytes(snapshot, load_word(links), 2 * sizeof(node)) : NULL;
		if (!next || load_word(next + 8) != node)
			return 0;
		node = load_word(links);
	} while (node != first + TCB_BYTES);
	return head;
}

static void find_lists(const struct controls *controls, const struct snapshot *snapshot)
{
	for (size_t i = 0; i < controls->nr; i++) {
		uint64_t address = controls->controls[i].address, head;

		if (controls->controls[i].head != UNSEEN)
			continue;
		head = follow(controls, snapshot, address, 0);
		if (head)
			follow(controls, snapshot, address, head);
	}
}

/* The heads of glibc's lists; 0: not known. */
struct list_heads {
	uint64_t used, cached;
};

static void find_heads(const struct controls *controls, const struct snapshot *snapshot,
		       struct list_heads *ret)
{
	*ret = (struct list_heads){0};
	for (size_t i = 0; i < snapshot->nr_threads && !ret->used; i++) {
		const struct control *control =
			find_control(controls, snapshot->threads[i].registers.thread_pointer);
		uint64_t start, end;

		if (!control)
			continue;
		if (find_block(snapshot, control->address, &start, &end))
			ret->used = control->head;
		else if (control->head)
			/* _dl_stack_used, _dl_stack_user, _dl_stack_cache (ldsodefs.h, 2.34) */
			ret->cached = control->head + 16;
	}
}

/* Adds the stack of the ended thread whose control block this may be. */
static int try_ended(struct thread_stacks *stacks, const struct snapshot *snapshot,
		     const struct list_heads *heads, const struct control *control)
{
	struct thread_stack stack = {.thread = SIZE_MAX, .control = control->address};
	uint64_t word;

	/* In no list: the program gave the thread that memory, and uses it as it likes. */
	if (control->is_living || !control->head ||
	    !snapshot_word(snapshot, control->address + TID_AT, &word) || (uint32_t)word != 0 ||
	    !find_block(snapshot, control->address, &stack.start, &stack.end))
		return 0;
	stack.sp = stack.end;
	stack.waits_for_join =
		!(control->head == heads->cached || (heads->used && control->head != heads->used));
	return add(stacks, &stack);
}

static int find_ended(struct thread_stacks *stacks, const struct snapshot *snapshot)
{
	struct controls controls = {0};
	struct list_heads heads;
	int err = find_controls(&controls, snapshot);

	if (!err) {
		find_lists(&controls, snapshot);
		find_heads(&controls, snapshot, &heads);
		for (size_t i = 0; i < controls.nr && !err; i++)
			err = try_ended(stacks, snapshot, &heads, &controls.controls[i]);
	}
	free(controls.controls);
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
