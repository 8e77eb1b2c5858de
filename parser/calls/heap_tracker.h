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

#include "parser/heap/heap_model.h"
#include "parser/records/perf_event_types.h"
#include "parser/statistics/ref_counts.h"
#include "parser/statistics/site_stats.h"

enum heap_anomaly_kind {
	ANOMALY_FREE_UNKNOWN, /* free of a block allocated before recording began, or of no block */
	ANOMALY_DOUBLE_FREE,
	ANOMALY_STILL_HELD,	 /* an allocation returned a block still held: a free was missed */
	ANOMALY_REALLOC_UNKNOWN, /* realloc of an unknown block */
	ANOMALY_ALLOC_FAILED,	 /* NULL, or posix_memalign's error */
	ANOMALY_MISMATCH,	 /* released by a function of another family: new[], then delete */
	ANOMALY_NR_KINDS,
};

struct heap_anomaly {
	enum heap_anomaly_kind kind;
	uint64_t address;
	struct heap_op op; /* what was unexpected */
	/*
	 * DOUBLE_FREE, STILL_HELD, MISMATCH: the allocation known for the address; ALLOC_FAILED:
	 * the size that was asked for.
	 */
	struct heap_block block;
	struct heap_op released; /* DOUBLE_FREE: the first free */
};

/* How the wait for a call's return ended without it. */
enum entry_end {
	ENTRY_THREAD_ENDED, /* inside the call */
	ENTRY_EXECED,	    /* its process did, inside the call */
	ENTRY_JUMPED_OVER,  /* a call around it returned first: longjmp(), or the return was lost */
	ENTRY_PUSHED_OUT,   /* too many calls came inside it: longjmp(), or the return was lost */
	ENTRY_RECORDING_ENDED,
	ENTRY_NR_ENDS,
};

struct heap_tracker_stats {
	uint64_t events;      /* probe events taken in */
	uint64_t allocations; /* successful ones, realloc's new block included */
	uint64_t frees;	      /* releases of a held block, realloc's old one included */
	uint64_t allocated_bytes, freed_bytes;
	uint64_t null_frees;
	uint64_t thread_exit_frees; /* glibc's own flush */
	uint64_t anomalies[ANOMALY_NR_KINDS];
	uint64_t entries_without_return, returns_without_entry;
	uint64_t entries[ENTRY_NR_ENDS]; /* the same, by what ended the wait */
	uint64_t returns_at_start;	 /* of those without entry: a thread's first event */
	/* Of the others, realloc()'s: a held block may have been its old one. */
	uint64_t unpaired_reallocs, last_unpaired_realloc_ns;
	uint64_t clock_steps;	   /* a call returned on one CPU before it was entered on another */
	uint64_t blocks_unlocated; /* posix_memalign succeeded, *memptr was not recorded */
	uint64_t blocks_dropped_by_exec;
	/* After finish: the allocator's own that are still there, inherited ones excepted. */
	uint64_t own_mappings, own_mapped_bytes;
	/* Forked children that have forgotten what they inherited, for lack of room. */
	uint64_t forgetful_children;
};

/* Who needs what is mapped, as a stack tells it. */
enum mapping_owner {
	MAPPING_OWNER_UNKNOWN, /* there is no stack */
	MAPPING_IS_PROGRAMS,
	MAPPING_IS_RANKED, /* whoever needs it, it is to count as the program's */
	MAPPING_IS_OWN,	   /* the allocator, the loader, or the C library for itself */
};

/* Of one kind of resource that is no memory. */
struct resource_counts {
	const struct resource_kind *kind; /* NULL: nothing of it has happened */
	uint64_t gives, takes;		  /* of what is held afterwards, respectively before */
	uint64_t refs, unrefs;
	uint64_t failures;	/* calls that gave nothing */
	uint64_t unknown_takes; /* of what was not seen given */
	uint64_t unpaired;	/* entries and returns of calls whose other half was not seen */
};

/* An operation, as leakfollow shows it. */
struct heap_change {
	bool enters; /* a block begins to be held; else it ends */
	struct heap_block block;
	struct heap_op op;
};

#define HEAP_KIND_MEMORY "memory"

struct heap_observer {
	void *context;
	/*
	 * Each change to a held block, in time order. What a forked child inherited is its
	 * parent's: what the child does with its copies is not told.
	 */
	void (*on_change)(void *context, const struct heap_change *change);
	const char *kind; /* of resource, or HEAP_KIND_MEMORY: only what is of it; NULL: all */
};

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
/* An event about the block at @address will likely come soon (heap_prefetch()). */
bool heap_tracker_prefetch(const struct heap_tracker *tracker, uint64_t address, bool sooner);
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
