/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The open calls of a thread: entered, and not seen to end. Calls nest, so they form a stack. A
 * call ends by the event of a return probe (a return), or of a probe on a `ret` instruction (an
 * exit). Either belongs to the newest open call of its function. If both the entry's and the end's
 * return addresses are recorded, they must be equal, so that an entry whose end was lost takes no
 * other call's end.
 *
 * Each call remembers the blocks and the failures of the calls inside it, because these may turn
 * out to be part of the outer call.
 *
 * parser/calls/heap_calls.c decides what becomes of a call that leaves the stack.
 */
#ifndef LEAKTOOLS_PARSER_CALL_PAIRING_H
#define LEAKTOOLS_PARSER_CALL_PAIRING_H

#include "parser/heap/heap_model.h"
#include "parser/records/perf_event_types.h"

#define CALL_MAX_DEPTH 16
#define CALL_MAX_INNER 8 /* a call with more of them has lost its end: heap_calls.c gives it up */

struct inner_block {
	uint64_t address;
	uint64_t sequence; /* of the allocating event */
};

struct open_call {
	const struct probe_schema *schema;
	uint64_t args[PROBE_MAX_ARGS];
	uint64_t caller;	/* the return address; 0: not known */
	uint64_t probe_address; /* 0: not known */
	struct heap_op op;	/* the entry */
	bool entry_seen;	/* false only in call_stack.made_up */
	bool is_jumped_to;	/* by the next outer call, which ends with it */
	bool is_inner;		/* the next outer call may have made it: call_is_inside() */

	/*
	 * HEAP_ALLOC_TO_PTR: @stored_block is known, by PROBE_STORE or PROBE_CALL. If not, the
	 * stack dump of the end may show it.
	 */
	bool stored;
	uint64_t stored_block;

	bool released; /* HEAP_REALLOC: its entry released @old_block; undone if it fails */
	struct heap_block old_block;

	struct inner_block inner[CALL_MAX_INNER];
	int nr_inner;
	/*
	 * The newest allocation in it that failed, by its number in heap_anomalies.h, which leads
	 * to the earlier ones; or ANOMALY_NONE.
	 */
	size_t inner_failure;
};

struct call_stack {
	struct open_call calls[CALL_MAX_DEPTH]; /* outermost first */
	int depth;
	struct open_call made_up; /* for a return without an entry */
	/*
	 * The thread's last event was the entry of a call whose end is recorded, too. If the next
	 * one is an entry with the same caller, the call has jumped there.
	 */
	bool entered_last;
	/*
	 * The exit that ended a call last, unless another event came after it: the address of the
	 * `ret`, where it returned to, and whether that call was jumped to. Otherwise @at is 0. It
	 * tells the events of functions that share a `ret`: call_stack_has_exit().
	 */
	struct {
		uint64_t at, return_address;
		bool was_jumped_to;
	} last_exit;
};

/*
 * From an entry: the return address. 0: not recorded, or a return probe has replaced it by its
 * trampoline's (a probed function jumped here).
 */
uint64_t call_caller_of(const struct perf_sample *sample);

/* Opens a call. The stack must not be full. @op is the entry. */
struct open_call *call_stack_push(struct call_stack *stack, const struct perf_sample *sample,
				  const struct heap_op *op);

/* The innermost open call, or NULL. */
struct open_call *call_stack_top(struct call_stack *stack);

/* Removes the outermost call, which the caller has given up. */
void call_stack_remove_bottom(struct call_stack *stack);

/* Finds the open call that @sample, a return or an exit, ends. Returns its index or -1. */
int call_stack_match(const struct call_stack *stack, const struct perf_sample *sample);

/*
 * From a return or an exit: the address that the call returns to. 0: not known, or replaced by a
 * return probe's trampoline.
 */
uint64_t call_return_of(const struct perf_sample *sample);

/*
 * True if an exit, a `ret` to @return_address, may end an open call that returns to @caller. If
 * both are known, they must be equal. If one is not known, only the newest call may end: the `ret`
 * may belong to another function, too.
 */
bool call_exit_may_end(uint64_t caller, uint64_t return_address, bool is_newest);

/*
 * True if @sample, an exit, ends an open call of its function. Ignore the other ones: they end
 * calls of other functions that share the code, or calls from before the recording. A `ret` that
 * several functions share causes one event for each, in any order. The first that fits ends a call.
 * A second one, to the same address, ends the call on top only if the call that ended was jumped
 * to.
 */
bool call_stack_has_exit(const struct call_stack *stack, const struct perf_sample *sample);

/*
 * Notes @sample as the thread's last event. After an exit that ended @call, call
 * call_stack_note_exit() first.
 */
void call_stack_note_event(struct call_stack *stack, const struct perf_sample *sample);
void call_stack_note_exit(struct call_stack *stack, const struct perf_sample *sample,
			  const struct open_call *call);

/*
 * True if @outer may have made a call from @caller: @caller or @outer's probe address is not known
 * (0), or @caller is in the allocator's own code (call_is_from()), or where @outer was called from
 * (@outer has jumped on, as a PLT stub does).
 */
bool call_is_inside(const struct open_call *outer, uint64_t caller);

/*
 * True if @address is so near to @probe_address (less than 64 KiB) that it probably is in the same
 * object file, which is the allocator's own code. Both must be known.
 */
bool call_is_near(uint64_t address, uint64_t probe_address);

/*
 * True if a call from @caller comes from the allocator's own code, where the function at
 * @outer_probe is, and not from the function that called that one, from @outer_caller (0: not
 * known, or in that code, too). Small static programs have both within the distance of
 * call_is_near(). Then the caller must not be much nearer to @outer_caller. (A call's return
 * address is after the function's start.)
 */
bool call_is_from(uint64_t caller, uint64_t outer_probe, uint64_t outer_caller);

/*
 * True if the innermost open call with a known caller returns to @return_address: it may have
 * jumped to a function that returns there. Open calls without a caller are skipped: they were
 * jumped to, and a return probe's trampoline was the return address at their entry.
 */
bool call_stack_jumps_to(const struct call_stack *stack, uint64_t return_address);

/*
 * True if an open call may be the frame at @address in a stack, which returns to @caller. leakrec
 * gives a return address back to a frame that was left by longjmp(), though another function has
 * its place now. So @address must be in the object file of the call's function.
 */
bool call_stack_has_frame(const struct call_stack *stack, uint64_t address, uint64_t caller);

/* Remembers a block allocated inside @call. Returns false if there is no room. */
bool call_add_inner(struct open_call *call, uint64_t address, uint64_t sequence);

#endif
