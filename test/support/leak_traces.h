/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Simulated programs with known leaks: caches filled at the start, pools that grow to a plateau,
 * churn with all kinds of lifetimes, and among them leaks of several kinds. Servers do this in
 * worker processes and threads (leak_trace_runs.c). The same seed makes the same trace.
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
	TRACE_CALLERS,	   /* so, below one function, which distant callers call in turn */
};

/* The processes and threads that allocate blocks of one kind, each at the same stacks. */
enum trace_actor {
	TRACE_MAIN,	       /* the first process */
	TRACE_WORKERS,	       /* a pool of processes; some pools replace them */
	TRACE_ONE_WORKER,      /* it leaks; the others only load their tables there */
	TRACE_JOBS,	       /* processes with short lives, over and over again */
	TRACE_THREADS,	       /* more and more, up to a limit */
	TRACE_PASSING_THREADS, /* each frees its blocks as it ends, except those it leaks */
	TRACE_NR_ACTORS,
};

const char *trace_actor_name(enum trace_actor actor);

/* A process or thread, in which a part of the program runs. */
struct trace_run {
	enum trace_actor actor;
	pid_t pid;
	double start_s, end_s; /* end_s: INFINITY if it lives on */
	double length_s;   /* the time in which a cache fills; all others of its pool equal it */
	double share;	   /* of the blocks that the same part would have in one process */
	double leak_share; /* so that the living ones leak as much as one process would */
	bool is_leaker;	   /* of a TRACE_ONE_WORKER */
};

/* What a program does with some of its memory, and the stacks that allocate for it. */
struct trace_part {
	enum trace_kind kind;
	enum trace_spread spread;
	enum trace_actor actor;
	uint32_t first, nr; /* stack ids */
	uint32_t nr_ways;   /* of TRACE_CALLERS: the stacks of each caller */
	double step_s;	    /* and the time from one caller to the next */
	double nr_staying;  /* in windows: its blocks that are never freed, observed or not */
};

/* Kinds of programs. */
enum trace_set {
	TRACE_SIMPLE,  /* all parts are TRACE_ONE_STACK and TRACE_MAIN */
	TRACE_SPREAD,  /* most parts are not TRACE_ONE_STACK */
	TRACE_SERVERS, /* nor are they TRACE_MAIN */
	TRACE_SHARED,  /* they are TRACE_CALLERS, or share helpers that allocate for them */
};

/* What is seen of them. */
enum trace_view { TRACE_WHOLE, TRACE_IN_WINDOWS, TRACE_IN_HARD_WINDOWS };

struct trace_windows;

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
	enum trace_set set;
	struct trace_run *runs; /* the first is TRACE_MAIN's */
	size_t nr_runs;
	const struct trace_run *run;   /* the current one */
	double share;		       /* of the current part's blocks */
	double scale;		       /* so many times as many blocks as usual */
	struct trace_windows *windows; /* NULL: all time is observed */
};

/* Ends the test if memory runs out. */
void leak_trace_init(struct leak_trace *trace, uint64_t seed, enum trace_set set);
/*
 * The same, recorded in windows: two per cent of ten minutes to two hours. The programs do more, so
 * that about as much is observed of them. Hard windows: see leak_trace_windows.h.
 */
void leak_trace_init_windows(struct leak_trace *trace, uint64_t seed, enum trace_view view);
void leak_trace_deinit(struct leak_trace *trace);

/* For verdict_input.process_life. */
struct process_life leak_trace_life(const void *trace, pid_t pid, uint64_t time_ns);

/*
 * The functions of a stack, as verdict_input.functions_of wants them: main, a module that several
 * parts share, the part's own function, and in the many stacks of a part up to three more. In
 * TRACE_SHARED a helper follows, which has one way to allocate, or several. Leaks have helpers that
 * only leaks call.
 */
int leak_trace_functions(void *trace, uint32_t stack_id, uint64_t *ret, size_t max, size_t *ret_nr);

/* The number of functions that all stacks of a part share. */
#define TRACE_PART_DEPTH 3

#endif
