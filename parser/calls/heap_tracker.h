/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From probe events to heap operations: pairs entries with returns for each thread, follows
 * processes through fork, vfork, exec and exit, applies the outcome to the heap model and tells
 * apart what is unexpected.
 *
 * Pairing. Each thread has a stack of open calls. A return belongs to the newest open call of its
 * function. Calls nest (glibc's realloc(NULL, n) calls malloc): inner operations are applied at
 * once, and the outer return then replaces what the calls inside it did to the block it returns, so
 * each block counts once, and an entry whose return never came does no harm.
 *
 * Thread exits. glibc flushes a dying thread's cache through free(): pointers that the program had
 * freed already, then the cache itself, which no probed function allocated. Such a tail of a
 * thread's events is recognised and reported by nobody (docs/heap-model.md gives the rule).
 */
#ifndef LEAKTOOLS_PARSER_HEAP_TRACKER_H
#define LEAKTOOLS_PARSER_HEAP_TRACKER_H

#include "parser/calls/tracker_types.h"
#include "parser/records/block_prefetch.h"
#include "parser/records/perf_event_types.h"
#include "parser/statistics/ref_counts.h"
#include "parser/statistics/site_stats.h"

struct heap_tracker;

int heap_tracker_create(const struct heap_observer *observer, struct heap_tracker **ret);
void heap_tracker_destroy(struct heap_tracker *tracker);

/*
 * Takes the next event in time order. @stack_id is the sample's interned stack. Return 0 or
 * -ENOMEM.
 */
int heap_tracker_sample(struct heap_tracker *tracker, const struct perf_sample *sample,
			uint32_t stack_id);
/* The same with an end of a system call, which has made a mapping of @owner's. */
int heap_tracker_syscall(struct heap_tracker *tracker, const struct perf_sample *sample,
			 uint32_t stack_id, enum mapping_owner owner);
/* For the reader; valid as long as @tracker. */
const struct block_prefetch *heap_tracker_block_prefetch(const struct heap_tracker *tracker);
/* Whether process @pid is known to have a thread @tid, which lives. */
bool heap_tracker_has_thread(const struct heap_tracker *tracker, pid_t pid, pid_t tid);
int heap_tracker_fork(struct heap_tracker *tracker, const struct perf_task_record *record);
int heap_tracker_exit(struct heap_tracker *tracker, const struct perf_task_record *record);
int heap_tracker_comm(struct heap_tracker *tracker, const struct perf_comm_record *record);

/* Call once after the last event: settles what waited for more. */
int heap_tracker_finish(struct heap_tracker *tracker);

const struct heap_tracker_stats *heap_tracker_stats(const struct heap_tracker *tracker);

/* What happened to resources, RESOURCE_MAX_KINDS rows of which those without a kind are empty. */
const struct resource_counts *heap_tracker_resources(const struct heap_tracker *tracker);

/* The references to the object @block, or NULL if they are not counted. */
const struct ref_object *heap_tracker_refs(const struct heap_tracker *tracker,
					   const struct heap_block *block);

/* What each allocation stack has done until now. The tracker's. */
const struct site_stats *heap_tracker_sites(const struct heap_tracker *tracker);

/*
 * After finish: the anomalies, and all blocks still held by any process (inherited copies
 * excluded), both in time order. The arrays are the tracker's.
 */
const struct heap_anomaly *heap_tracker_anomalies(const struct heap_tracker *tracker,
						  size_t *ret_nr);
/* Of each kind, how many were counted that are not among them, as there were too many. */
const uint64_t *heap_tracker_unlisted(const struct heap_tracker *tracker);
int heap_tracker_held(struct heap_tracker *tracker, const struct heap_block **ret, size_t *ret_nr);

/* When a process was; 0: before the recording, or after it, as far as is known. */
struct process_life {
	uint64_t start_ns; /* when it was forked, or executed its program */
	uint64_t end_ns;
};

/* The life of the process that had @pid at @time_ns. */
struct process_life heap_tracker_life(const struct heap_tracker *tracker, pid_t pid,
				      uint64_t time_ns);

/* The command name of thread @tid as last seen, or "". */
const char *heap_tracker_comm_of(const struct heap_tracker *tracker, pid_t tid);
/* That of the first thread of process @pid, by which it is known; or @tid's, or "". */
const char *heap_tracker_process_name(const struct heap_tracker *tracker, pid_t pid, pid_t tid);

#endif
