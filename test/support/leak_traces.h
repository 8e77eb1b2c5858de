/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Simulated programs with known leaks: caches filled at the start, pools that grow to a plateau,
 * churn with all kinds of lifetimes, and among them leaks of several kinds. The same seed makes the
 * same trace.
 */
#ifndef LEAKTOOLS_TEST_SUPPORT_LEAK_TRACES_H
#define LEAKTOOLS_TEST_SUPPORT_LEAK_TRACES_H

#include "parser/verdicts/verdicts.h"

enum trace_kind {
	/* No leaks: */
	TRACE_STARTUP_CACHE,
	TRACE_PLATEAU_POOL,
	TRACE_REPLACED_CACHE, /* of constant size, with random replacement */
	TRACE_FIFO_CACHE,     /* first in, first out */
	TRACE_CHURN,	      /* lifetimes of many kinds, with long tails */
	TRACE_RISING_CHURN,   /* twice as much from the middle on */
	TRACE_SESSIONS,	      /* lifetimes of a tenth to a third of the recording */
	/* Leaks: */
	TRACE_SLOW_LEAK,     /* one block in a thousand of a churn */
	TRACE_SHARE_LEAK,    /* a greater share of a churn */
	TRACE_PLAIN_LEAK,    /* all blocks, at a steady rate */
	TRACE_CLUMPED_LEAK,  /* several at a time */
	TRACE_LATE_LEAK,     /* begins in the middle */
	TRACE_WAVERING_LEAK, /* many blocks, at a rate that rises and falls, with pauses */
	TRACE_BURST_LEAK,    /* the blocks that a churn allocated in a short time */
	TRACE_NR_KINDS,
};

#define TRACE_FIRST_LEAK TRACE_SLOW_LEAK

const char *trace_kind_name(enum trace_kind kind);

/* How the blocks of one kind are allocated. */
enum trace_spread {
	TRACE_ONE_STACK,
	TRACE_MANY_STACKS, /* each block by one of up to 800 stacks, and of any size */
	TRACE_TOGETHER,	   /* a block by each of several stacks at a time */
};

/* What a program does with some of its memory, and the stacks that allocate for it. */
struct trace_part {
	enum trace_kind kind;
	enum trace_spread spread;
	uint32_t first, nr; /* stack ids */
};

/* The stack with id i belongs to parts[part_of[i]]. */
struct leak_trace {
	uint64_t random;
	struct site_stats *stats;
	struct heap_block *held; /* in time order */
	size_t nr_held, max_held;
	uint64_t start_ns, end_ns;
	struct trace_part *parts;
	size_t nr_parts, nr_leaks;
	uint32_t *part_of;
	size_t nr_stacks;
	bool is_spread;
};

/* @is_spread: most parts are not TRACE_ONE_STACK. Ends the test if memory runs out. */
void leak_trace_init(struct leak_trace *trace, uint64_t seed, bool is_spread);
void leak_trace_deinit(struct leak_trace *trace);

/*
 * The functions of a stack, as verdict_input.functions_of wants them: main, a module that several
 * parts share, the part's own function, and in the many stacks of a part up to three more.
 */
int leak_trace_functions(void *trace, uint32_t stack_id, uint64_t *ret, size_t max, size_t *ret_nr);

/* The number of functions that all stacks of a part share. */
#define TRACE_PART_DEPTH 3

#endif
