/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The calls that one thread has open: entered, and not seen to return. Calls nest, so they form a
 * stack; a return belongs to the newest open call of its function. Where both the entry's return
 * address and the return's are recorded they must be equal, so that an entry whose return was lost
 * takes no other call's.
 *
 * Each call remembers the blocks and the failures of the calls inside it: what an inner call did
 * may turn out to be a part of what the outer one does.
 *
 * No heap, no policy: heap_tracker.c decides what becomes of a call that is taken off the stack.
 */
#ifndef LEAKTOOLS_PARSER_CALL_PAIRING_H
#define LEAKTOOLS_PARSER_CALL_PAIRING_H

#include "parser/heap/heap_model.h"
#include "parser/records/perf_event_types.h"

#define CALL_MAX_DEPTH 16
#define CALL_MAX_INNER 8

struct inner_block {
	uint64_t address;
	uint64_t sequence; /* of the event that allocated it */
};

struct open_call {
	const struct probe_schema *schema;
	uint64_t args[PROBE_MAX_ARGS];
	uint64_t caller;	/* the return address; 0: not known */
	uint64_t probe_address; /* 0: not known */
	struct heap_op op;	/* the entry */
	bool entry_seen;	/* false: made up for a return without one */
	bool is_jumped_to;	/* by the call before, which ends where it does */

	bool stored; /* HEAP_ALLOC_TO_PTR: PROBE_STORE gave the block */
	uint64_t stored_block;

	bool released; /* HEAP_REALLOC: it took @old_block off the heap */
	struct heap_block old_block;

	struct inner_block inner[CALL_MAX_INNER];
	int nr_inner;
	size_t inner_failure; /* the newest (heap_anomalies.h), or ANOMALY_NONE */
};

struct call_stack {
	struct open_call calls[CALL_MAX_DEPTH]; /* outermost first */
	int depth;
	struct open_call made_up; /* for a return whose entry was not seen */
	bool entered_last;	  /* the thread's last event was an entry */
	/* Where the thread's last event was an exit, and of what; at 0: it was none. */
	struct {
		uint64_t at, return_address;
		bool was_jumped_to;
	} last_exit;
};

/*
 * The return address that the entry @sample shows; 0: it was not recorded, or a return probe had
 * put its own in the place (a function that another probed one jumps to).
 */
uint64_t call_caller_of(const struct perf_sample *sample);

/* Opens a call. The stack must not be full. @op is the entry. */
struct open_call *call_stack_push(struct call_stack *stack, const struct perf_sample *sample,
				  const struct heap_op *op);

/* The innermost open call, or NULL. */
struct open_call *call_stack_top(struct call_stack *stack);

/* Takes the outermost call off. */
void call_stack_remove_bottom(struct call_stack *stack);

/* The index of the open call that a return of @schema to @return_address (0: unknown) ends, or -1.
 */
int call_stack_match(const struct call_stack *stack, const struct probe_schema *schema,
		     uint64_t return_address);

/*
 * Where the call that @sample, of a return, ends returns to; 0: it is not known, a return probe had
 * put its own address in the place.
 */
uint64_t call_return_of(const struct perf_sample *sample);

/*
 * Whether an exit, by a `ret` to @return_address, may be that of an open call of its function that
 * will return to @caller. Where one of the two is not known, only the thread's newest call will do:
 * a function with a return probe may end in the same code.
 */
bool call_exit_may_end(uint64_t caller, uint64_t return_address, bool is_newest);

/*
 * True if @sample, of a PROBE_EXIT, ends an open call of its function. Others are calls of other
 * functions that end in the same code, or that began before the recording. The events of all
 * functions that end there come for each call, in any order: more than one of them counts only
 * where one function has jumped to the other.
 */
bool call_stack_has_exit(const struct call_stack *stack, const struct perf_sample *sample);

/* Notes that @sample is the thread's last event; of an exit, that it has ended @call. */
void call_stack_note_event(struct call_stack *stack, const struct perf_sample *sample);
void call_stack_note_exit(struct call_stack *stack, const struct perf_sample *sample,
			  const struct open_call *call);

/*
 * True if a call from @caller (0: unknown) can have come from inside @outer, that is, from the
 * allocator's own code, or by a jump from @outer's first instructions (a PLT stub).
 */
bool call_is_inside(const struct open_call *outer, uint64_t caller);

/*
 * True if @address lies in the object that holds the function at @probe_address; so small an object
 * is the allocator itself. Both must be known.
 */
bool call_is_near(uint64_t address, uint64_t probe_address);

/*
 * True if a function that returns to @return_address was jumped to by the innermost open call: it
 * returns where that one will. (At its entry a return probe's trampoline would have stood there,
 * and its caller would not be known.)
 */
bool call_is_jumped_to(const struct call_stack *stack, uint64_t return_address);

/* Remembers a block allocated inside @call. Returns false if there is no room. */
bool call_add_inner(struct open_call *call, uint64_t address, uint64_t sequence);

#endif
