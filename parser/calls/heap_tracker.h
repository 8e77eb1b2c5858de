/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Turns probe events into heap operations: pairs entries with returns for each thread, follows
 * processes through fork, vfork, exec and exit, applies the results to the heap model, and finds
 * unexpected operations.
 *
 * Pairing. Each thread has a stack of open calls. A return belongs to the newest open call of its
 * function. Calls nest (glibc's realloc(NULL, n) calls malloc): inner operations are applied at
 * once. The outer return then replaces what inner calls did to the block that it returns. So each
 * block counts once, and an entry whose return is missing does no harm.
 *
 * Thread exits. glibc flushes a dying thread's cache through free(): pointers that the program has
 * already freed, then the cache itself, which no probed function allocated. The tracker recognises
 * and drops such frees at the end of a thread (docs/heap-model.md has the rule).
 */
#ifndef LEAKTOOLS_PARSER_HEAP_TRACKER_H
#define LEAKTOOLS_PARSER_HEAP_TRACKER_H

#include "common/size_range.h"
#include "parser/calls/tracker_types.h"
#include "parser/records/block_prefetch.h"
#include "parser/records/perf_event_types.h"
#include "parser/statistics/ref_counts.h"
#include "parser/statistics/site_stats.h"

struct followed_block;
struct heap_tracker;
struct observed_time;

int heap_tracker_create(const struct heap_observer *observer, struct heap_tracker **ret);
void heap_tracker_destroy(struct heap_tracker *tracker);

/* Call it before the first event. @losses is copied. */
void heap_tracker_set_losses(struct heap_tracker *tracker, const struct heap_losses *losses);
/*
 * Only blocks of @sizes are recorded. Those that a realloc() takes out of them count as freed:
 * other blocks of their new sizes are not recorded. Call it before the first event.
 */
void heap_tracker_limit_sizes(struct heap_tracker *tracker, const struct size_range *sizes);

/*
 * Handles the next event in time order. @stack_id is the sample's interned stack. Returns 0 or
 * -ENOMEM, as the functions below.
 */
int heap_tracker_sample(struct heap_tracker *tracker, const struct perf_sample *sample,
			uint32_t stack_id);
/* Handles the entry or exit of a system call. @owner is the owner of the mapping that it makes. */
int heap_tracker_syscall(struct heap_tracker *tracker, const struct perf_sample *sample,
			 uint32_t stack_id, enum mapping_owner owner);
/* For the reader. Valid as long as @tracker. */
const struct block_prefetch *heap_tracker_block_prefetch(const struct heap_tracker *tracker);
/* True if process @pid is known to have a living thread @tid. */
bool heap_tracker_has_thread(const struct heap_tracker *tracker, pid_t pid, pid_t tid);
/* True if thread @tid is in recorded calls, as far as is known: longjmp() may have left them. */
bool heap_tracker_has_open_calls(const struct heap_tracker *tracker, pid_t tid);
/* True if one of them may be that frame in a stack: call_stack_has_frame(). */
bool heap_tracker_has_frame(const struct heap_tracker *tracker, pid_t tid, uint64_t address,
			    uint64_t caller);
int heap_tracker_fork(struct heap_tracker *tracker, const struct perf_task_record *record);
int heap_tracker_exit(struct heap_tracker *tracker, const struct perf_task_record *record);
int heap_tracker_comm(struct heap_tracker *tracker, const struct perf_comm_record *record);

/* The recording begins or ends at @time_ns. Periods (site_stats.h) begin at the first such time. */
void heap_tracker_time(struct heap_tracker *tracker, uint64_t time_ns);
/*
 * Tells the observer of the processes that have exited by now. Otherwise the next event that is not
 * an exit does, so that what the last processes held is held at the end (process_ends.h).
 */
int heap_tracker_settle_exits(struct heap_tracker *tracker);
/*
 * Blocks that were allocated before what is read of the recording (leakrec:held), by @stack_id.
 * They are held from here on.
 */
int heap_tracker_carry(struct heap_tracker *tracker, const struct perf_sample *sample,
		       uint32_t stack_id);
/* A window opens or closes (leakrec:window). Without windows, all time is observed. */
int heap_tracker_window(struct heap_tracker *tracker, const struct perf_sample *sample);
/* leakrec has looked at a block (leakrec:look). */
int heap_tracker_look(struct heap_tracker *tracker, const struct perf_sample *sample);
/* The windows. The tracker's. */
const struct observed_time *heap_tracker_observed(const struct heap_tracker *tracker);
/* What is known of a held block after its window; NULL: its window has not closed. */
const struct followed_block *heap_tracker_followed(const struct heap_tracker *tracker,
						   const struct heap_block *block);

/* Drops the blocks of processes whose exit was told. Call it after the last event. */
int heap_tracker_forget_exited(struct heap_tracker *tracker);

/* Call it once after the last event: it settles what waited for more events. */
int heap_tracker_finish(struct heap_tracker *tracker);

const struct heap_tracker_stats *heap_tracker_stats(const struct heap_tracker *tracker);

/* Counts of resources: RESOURCE_MAX_KINDS rows. Rows without a kind are unused. */
const struct resource_counts *heap_tracker_resources(const struct heap_tracker *tracker);

/* The references to the object @block. NULL: they are not counted. */
const struct ref_object *heap_tracker_refs(const struct heap_tracker *tracker,
					   const struct heap_block *block);

/* The counts of each allocation stack so far. The tracker's. */
const struct site_stats *heap_tracker_sites(const struct heap_tracker *tracker);

/*
 * After finish: the anomalies, and all blocks that any process still holds (except inherited
 * copies), both in time order. The tracker owns the arrays.
 */
const struct heap_anomaly *heap_tracker_anomalies(const struct heap_tracker *tracker,
						  size_t *ret_nr);
/*
 * For each kind, the number of anomalies that were counted but not listed, because there were too
 * many.
 */
const uint64_t *heap_tracker_unlisted(const struct heap_tracker *tracker);
int heap_tracker_held(struct heap_tracker *tracker, const struct heap_block **ret, size_t *ret_nr);

/* The memory in blocks that process @pid holds now, those inherited included. */
struct held_memory heap_tracker_held_memory(const struct heap_tracker *tracker, pid_t pid);

/* The life of a process; 0: before the recording, or after it, as far as is known. */
struct process_life {
	uint64_t start_ns; /* its fork or exec */
	uint64_t end_ns;
	bool is_told; /* the observer was told of its end (process_ends.h) */
};

/* The life of the process that had @pid at @time_ns. */
struct process_life heap_tracker_life(const struct heap_tracker *tracker, pid_t pid,
				      uint64_t time_ns);

/* The last known command name of thread @tid, or "". */
const char *heap_tracker_comm_of(const struct heap_tracker *tracker, pid_t tid);

/*
 * The process's name, that is, its first thread's, or that of the thread with the lowest number
 * that has one; or else @tid's, or "".
 */
const char *heap_tracker_process_name(const struct heap_tracker *tracker, pid_t pid, pid_t tid);

#endif
