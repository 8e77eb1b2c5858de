/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The open calls of a thread: entered, and not seen to return. Calls nest, so they form a stack. A
 * return belongs to the newest open call of its function. If both the entry's and the return's
 * return addresses are recorded, they must be equal, so that an entry whose return was lost takes
 * no other call's return.
 *
 * Each call remembers the blocks and the failures of the calls inside it, because these may turn
 * out to be part of the outer call.
 *
 * heap_calls.c decides what becomes of a call that leaves the stack.
 */
#ifndef LEAKTOOLS_PARSER_CALL_PAIRING_H
#define LEAKTOOLS_PARSER_CALL_PAIRING_H

#include "parser/heap/heap_model.h"
#include "parser/records/perf_event_types.h"

#define CALL_MAX_DEPTH 16
#define CALL_MAX_INNER 8

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
	bool entry_seen;	/* false: substitutes for a missing entry */
	bool is_jumped_to;	/* by the call before, which ends with it */
	bool is_inner;		/* the call before has made it */

	bool stored; /* HEAP_ALLOC_TO_PTR: PROBE_STORE gave the block */
	uint64_t stored_block;

	bool released; /* HEAP_REALLOC: it has released @old_block */
	struct heap_block old_block;

	struct inner_block inner[CALL_MAX_INNER];
	int nr_inner;
	size_t inner_failure; /* the newest (heap_anomalies.h), or ANOMALY_NONE */
};

struct call_stack {
	struct open_call calls[CALL_MAX_DEPTH]; /* outermost first */
	int depth;
	struct open_call made_up; /* for a return without an entry */
	bool entered_last;	  /* the thread's last event was an entry */
	/*
	 * If the thread's last event was an exit: its address, and the call that ended. Otherwise
	 * @at is 0.
	 */
	struct {
		uint64_t at, return_address;
		bool was_jumped_to;
	} last_exit;
};

/*
 * The return address in the entry @sample. 0: not recorded, or replaced by a return probe's (a
 * probed function jumped here).
 */
uint64_t call_caller_of(const struct perf_sample *sample);

/* Opens a call. The stack must not be full. @op is the entry. */
struct open_call *call_stack_push(struct call_stack *stack, const struct perf_sample *sample,
				  const struct heap_op *op);

/* The innermost open call, or NULL. */
struct open_call *call_stack_top(struct call_stack *stack);

/* Removes the outermost call. */
void call_stack_remove_bottom(struct call_stack *stack);

/*
 * Finds the open call that a return of @schema to @return_address (0: unknown) ends. Returns its
 * index or -1.
 */
int call_stack_match(const struct call_stack *stack, const struct probe_schema *schema,
		     uint64_t return_address);

/*
 * The address that the call in @sample, a return, returns to. 0: not known, or replaced by a return
 * probe's.
 */
uint64_t call_return_of(const struct perf_sample *sample);

/*
 * True if an exit, a `ret` to @return_address, may end an open call of its function that returns to
 * @caller. If one of the two is not known, only the thread's newest call qualifies, because a
 * function with a return probe may end in the same code.
 */
bool call_exit_may_end(uint64_t caller, uint64_t return_address, bool is_newest);

/*
 * True if @sample, a PROBE_EXIT, ends an open call of its function. Other exits end calls of other
 * functions that share the code, or calls from before the recording. Each call causes the events of
 * all functions that end there, in any order. More than one counts only if one function has jumped
 * to the other.
 */
bool call_stack_has_exit(const struct call_stack *stack, const struct perf_sample *sample);

/* Notes @sample as the thread's last event. An exit has ended @call. */
void call_stack_note_event(struct call_stack *stack, const struct perf_sample *sample);
void call_stack_note_exit(struct call_stack *stack, const struct perf_sample *sample,
			  const struct open_call *call);

/*
 * True if a call from @caller (0: unknown) may come from inside @outer: from the allocator's own
 * code, or by a jump from @outer's first instructions (a PLT stub).
 */
bool call_is_inside(const struct open_call *outer, uint64_t caller);

/*
 * True if @address lies in the object file that holds the function at @probe_address. So small an
 * object is the allocator itself. Both must be known.
 */
bool call_is_near(uint64_t address, uint64_t probe_address);

/*
 * True if a call from @caller comes from the object file of the function at @outer_probe, and not
 * from the function that called that one, from @outer_caller (0: not known, or in that file, too).
 * Small static programs have both within the distance of call_is_near(). Then the caller must not
 * be much nearer to @outer_caller. (A call's return address is after the function's start.)
 */
bool call_is_from(uint64_t caller, uint64_t outer_probe, uint64_t outer_caller);

/*
 * True if the innermost open call jumped to a function that returns to @return_address: it returns
 * where that call does. (At its entry a return probe's trampoline was the return address, so its
 * caller is not known.)
 */
bool call_is_jumped_to(const struct call_stack *stack, uint64_t return_address);

/* Remembers a block allocated inside @call. Returns false if there is no room. */
bool call_add_inner(struct open_call *call, uint64_t address, uint64_t sequence);

#endif
