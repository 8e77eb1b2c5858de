/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The list of what was unexpected. What is noted may be withdrawn later, when more of the recording
 * has shown that it was none of the program's doing: a failure inside a call that coped with it, or
 * the frees with which glibc flushes the cache of a dying thread.
 *
 * A recording may be full of it: whoever attaches to a program sees each block that it had before
 * freed. So no more are kept than somebody would read; the others are counted.
 *
 * A free_run watches one thread for that flush: the suspicious frees in a row that stand at the end
 * of its events (docs/heap-model.md, "Thread exits").
 */
#ifndef LEAKTOOLS_PARSER_HEAP_ANOMALIES_H
#define LEAKTOOLS_PARSER_HEAP_ANOMALIES_H

#include "parser/heap/heap_anomaly.h"

#include <stddef.h>

#define ANOMALY_NONE	   SIZE_MAX
#define ANOMALY_MAX_LISTED 16384 /* of a kind, beside those that may be withdrawn */

struct anomaly_note {
	bool withdrawn;	 /* its place is to be used anew */
	uint64_t caller; /* 0: not known */
	/*
	 * The one before it in its run, or chain of failures; or ANOMALY_NONE. Of those that were
	 * withdrawn, the one that was before.
	 */
	size_t previous;
};

struct heap_anomalies {
	struct heap_anomaly *list;  /* in no order until heap_anomalies_compact() */
	struct anomaly_note *notes; /* one for each of @list */
	size_t nr, capacity;
	size_t withdrawn;		     /* the last that was, or ANOMALY_NONE */
	uint64_t *counts;		     /* of each kind, without the withdrawn */
	uint64_t unlisted[ANOMALY_NR_KINDS]; /* of these, which are not in the list */
};

/* @counts, of ANOMALY_NR_KINDS zeroes, is the caller's and is kept up to date. */
void heap_anomalies_init(struct heap_anomalies *anomalies, uint64_t *counts);
void heap_anomalies_deinit(struct heap_anomalies *anomalies);

/* Notes @anomaly, which will not be withdrawn. Returns 0 or -ENOMEM. */
int heap_anomalies_add_final(struct heap_anomalies *anomalies, const struct heap_anomaly *anomaly);

/*
 * Notes @anomaly, linked to @previous (an index, or ANOMALY_NONE). Its index goes to *@ret. Returns
 * 0 or -ENOMEM.
 */
int heap_anomalies_add(struct heap_anomalies *anomalies, const struct heap_anomaly *anomaly,
		       uint64_t caller, size_t previous, size_t *ret);

/* Withdraws the anomaly at @last and those linked before it; returns how many. */
size_t heap_anomalies_withdraw_chain(struct heap_anomalies *anomalies, size_t last);

/* Removes the withdrawn ones, and puts the others in time order; indices are void then. */
void heap_anomalies_compact(struct heap_anomalies *anomalies);

/* Whether a free came from the allocator's own code. */
enum free_origin {
	FREE_ORIGIN_UNKNOWN, /* the recording does not say who called */
	FREE_BY_PROGRAM,
	FREE_BY_ALLOCATOR,
};

/* Suspicious frees of one thread, of the same origin, with no other probe event of it between. */
struct free_run {
	size_t last; /* the newest, or ANOMALY_NONE: the run is empty */
	enum free_origin origin;
	bool closed; /* other frees came after it; one more suspicious free begins a new run */
};

#define FREE_RUN_EMPTY ((struct free_run){.last = ANOMALY_NONE})

/*
 * An unremarkable free. A detached thread frees other threads' TLS blocks after it flushed its own
 * cache (glibc 2.36, nptl/allocatestack.c, __nptl_free_stacks()), so the run stays.
 */
void free_run_other_free(struct free_run *run, enum free_origin origin);

/* The anomaly that the thread's next suspicious free is to be linked to. */
size_t free_run_previous(const struct free_run *run, enum free_origin origin);

/* A suspicious free, noted at @index. */
void free_run_add(struct free_run *run, enum free_origin origin, size_t index);

/*
 * The thread is gone (@exited), or the recording is. If the run is glibc's flush its anomalies are
 * withdrawn; returns how many that were. If it is, unless the process died with the thread, it is
 * put at the head of the chain *@doubtful. The run is empty then.
 */
size_t free_run_end(struct free_run *run, struct heap_anomalies *anomalies, bool exited,
		    size_t *doubtful);

#endif
