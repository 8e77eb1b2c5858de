/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A simulated machine that runs random programs: threads of several processes that allocate, free,
 * fork, exec and exit. It keeps a simple account of what each call really did (an array for each
 * address space), and sends a heap tracker the events that a recording would have.
 */
#ifndef LEAKTOOLS_TEST_SUPPORT_HEAP_MACHINE_H
#define LEAKTOOLS_TEST_SUPPORT_HEAP_MACHINE_H

#include "test/support/heap_feed.h"

#define NR_ADDRESSES 256
#define NR_PROCESSES 6
#define NR_THREADS   4 /* of each process */
#define MAX_EVENTS   8 /* of one call */
#define NO_ADDRESS   (-1)

enum state { NEVER, HELD, RELEASED };

struct block {
	enum state state;
	struct heap_block b;
	uint64_t released_by;
};

struct memory {
	int nr_users; /* processes; 0: this slot is unused */
	pid_t pid;    /* of the first process; vfork children join later and leave first */
	struct block blocks[NR_ADDRESSES];
	bool busy[NR_ADDRESSES]; /* a call is using it; the program does not touch it */
};

enum effect { NOTHING, RELEASES_OLD, IS_UNKNOWN, ENTERS, FAILS };

/* An event of a call, sent when its thread's turn comes. */
struct event {
	const char *function;
	enum probe_point point;
	uint64_t args[PROBE_MAX_ARGS];
	uint64_t caller;
	uint64_t probe_address;
	bool lost;
	enum effect effect;
};

struct call {
	struct event events[MAX_EVENTS];
	int nr, at;
	int nr_open; /* entries sent without their returns */
	uint64_t size_bytes;
	bool size_known, in_place, failed;
	int old;	/* realloc's block, or NO_ADDRESS */
	int block;	/* the result, or NO_ADDRESS while there is none */
	int lost_old;	/* a realloc whose return will be lost */
	int vacates_at; /* from this event on another thread may get @old */
	bool unlocated;
	uint64_t release_sequence;
	struct heap_block old_block;
};

struct task {
	pid_t tid; /* 0: this slot is unused */
	bool flushes;
	struct call call;
	bool lost_old[NR_ADDRESSES]; /* the result of a realloc whose return was lost */
};

struct process {
	pid_t pid; /* 0: this slot is unused */
	struct memory *memory;
	struct task tasks[NR_THREADS]; /* [0] is the first */
};

struct machine {
	struct feed feed;
	uint64_t random;
	bool callers, lossy;
	bool whole_calls; /* some calls of malloc come as one event (PROBE_CALL) */
	struct process processes[NR_PROCESSES];
	struct memory memories[NR_PROCESSES];
	pid_t next_pid;
	uint64_t nr_calls, nr_unknown;
	struct heap_tracker_stats truth;
	struct heap_block *dead; /* blocks that ended processes held */
	size_t nr_dead, max_dead;
	int64_t shown; /* blocks that the observer saw begin, minus those that it saw end */
};

#define NO_CALL ((struct call){.old = NO_ADDRESS, .block = NO_ADDRESS, .lost_old = NO_ADDRESS})

/*
 * @callers: entries have return addresses, and some calls of malloc are one event. @lossy: some
 * events are lost. Ends the test if memory runs out.
 */
void machine_init(struct machine *m, uint64_t seed, bool callers, bool lossy);
void machine_deinit(struct machine *m);

/* Makes one step: the next event of a call, a new call, or a change to a thread or process. */
void machine_step(struct machine *m);

/* Ends all processes. */
void machine_exit_all(struct machine *m);

/* Between heap_machine_calls.c and heap_machine.c: */

/* A random number less than @below. */
uint64_t machine_draw(struct machine *m, uint64_t below);
/* An address that no block ever had. */
uint64_t machine_unknown_address(struct machine *m);
/* A random address in that state that no call is using, or NO_ADDRESS. */
int machine_pick_address(struct machine *m, const struct memory *memory, enum state state);
uint64_t machine_address_of(int index);
/* A return address in the program, different for each call. */
uint64_t machine_new_caller(struct machine *m);
/* @t makes a call: sends its event if it is a free, otherwise plans its events. */
void machine_begin_call(struct machine *m, struct process *p, struct task *t);
/* Sends the next event of @t's call. */
void machine_step_call(struct machine *m, struct process *p, struct task *t);
/* Forgets @p's call. */
void machine_end_call(struct process *p, struct call *call);

#endif
