/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The list of unexpected operations. An entry may be withdrawn later, when more of the recording
 * shows that the program did nothing wrong: an inner call failed and the outer one handled it, or
 * glibc flushed the cache of a dying thread.
 *
 * A recording may be full of such operations: after an attach, each free of an earlier block looks
 * unexpected. So the list holds no more than a user would read, and the rest is counted.
 *
 * A free_run watches one thread for that flush: the consecutive suspicious frees at the end of its
 * events (docs/heap-model.md, "Thread exits").
 */
#ifndef LEAKTOOLS_PARSER_HEAP_ANOMALIES_H
#define LEAKTOOLS_PARSER_HEAP_ANOMALIES_H

#include "parser/heap/heap_anomaly.h"

#include <stddef.h>

#define ANOMALY_NONE	   SIZE_MAX
#define ANOMALY_MAX_LISTED 16384 /* per kind, beside those that may be withdrawn */

struct anomaly_note {
	bool withdrawn;	 /* its index is free */
	uint64_t caller; /* 0: not known */
	/*
	 * The previous one of its run, or chain of failures; or ANOMALY_NONE. If withdrawn: the one
	 * withdrawn before.
	 */
	size_t previous;
};

struct heap_anomalies {
	struct heap_anomaly *list;  /* in no order until heap_anomalies_compact() */
	struct anomaly_note *notes; /* by index into @list */
	size_t nr, capacity;
	size_t withdrawn;		     /* the last withdrawn one, or ANOMALY_NONE */
	uint64_t *counts;		     /* by kind, without withdrawn ones */
	uint64_t unlisted[ANOMALY_NR_KINDS]; /* counted but not listed */
};

/* @counts, of ANOMALY_NR_KINDS zeros, is the caller's. It is kept up to date. */
void heap_anomalies_init(struct heap_anomalies *anomalies, uint64_t *counts);
void heap_anomalies_deinit(struct heap_anomalies *anomalies);

/* Adds @anomaly, which cannot be withdrawn. Returns 0 or -ENOMEM. */
int heap_anomalies_add_final(struct heap_anomalies *anomalies, const struct heap_anomaly *anomaly);

/*
 * Adds @anomaly, linked to @previous (an index, or ANOMALY_NONE). *@ret is its index. Returns 0 or
 * -ENOMEM.
 */
int heap_anomalies_add(struct heap_anomalies *anomalies, const struct heap_anomaly *anomaly,
		       uint64_t caller, size_t previous, size_t *ret);

/* Withdraws the anomaly at @last and those linked before it. Returns how many. */
size_t heap_anomalies_withdraw_chain(struct heap_anomalies *anomalies, size_t last);

/* Removes withdrawn ones and sorts the others by time. Indices become invalid. */
void heap_anomalies_compact(struct heap_anomalies *anomalies);

/* Whether a free came from the allocator's own code. */
enum free_origin {
	FREE_ORIGIN_UNKNOWN, /* the caller was not recorded */
	FREE_BY_PROGRAM,
	FREE_BY_ALLOCATOR,
};

/*
 * Consecutive suspicious frees of one thread, of the same origin, without other probe events
 * between them.
 */
struct free_run {
	size_t last; /* the newest, or ANOMALY_NONE: the run is empty */
	enum free_origin origin;
	bool closed; /* another free came after it; the next suspicious free begins a new run */
};

#define FREE_RUN_EMPTY ((struct free_run){.last = ANOMALY_NONE})

/*
 * Adds an ordinary free. A detached thread frees other threads' TLS blocks after it has flushed its
 * own cache (glibc 2.36, nptl/allocatestack.c, __nptl_free_stacks()), so the run stays.
 */
void free_run_other_free(struct free_run *run, enum free_origin origin);

/* The anomaly to which the thread's next suspicious free must be linked. */
size_t free_run_previous(const struct free_run *run, enum free_origin origin);

/* Adds a suspicious free, whose anomaly is at @index. */
void free_run_add(struct free_run *run, enum free_origin origin, size_t index);

/*
 * Ends the run, when the thread (@exited) or the recording has ended. If the run is glibc's flush,
 * its anomalies are withdrawn; returns how many. If it is the flush only in case the process
 * survives the thread, it is put at the head of the chain *@doubtful.
 */
size_t free_run_end(struct free_run *run, struct heap_anomalies *anomalies, bool exited,
		    size_t *doubtful);

#endif
