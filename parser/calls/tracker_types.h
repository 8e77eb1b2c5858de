/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the heap tracker counts and reports (heap_tracker.h). */
#ifndef LEAKTOOLS_PARSER_TRACKER_TYPES_H
#define LEAKTOOLS_PARSER_TRACKER_TYPES_H

#include "common/schema/resource_schema.h"
#include "parser/heap/heap_anomaly.h"

/* Why the tracker stopped waiting for a call's return. */
enum entry_end {
	ENTRY_THREAD_ENDED, /* the thread ended inside the call */
	ENTRY_EXECED,	    /* its process executed another program inside the call */
	ENTRY_JUMPED_OVER,  /* a call around it returned first: longjmp(), or a lost return */
	ENTRY_PUSHED_OUT,   /* too many calls inside it: longjmp(), or a lost return */
	ENTRY_RECORDING_ENDED,
	ENTRY_WINDOW_CLOSED, /* the window closed inside the call */
	ENTRY_NR_ENDS,
};

struct heap_tracker_stats {
	uint64_t events;      /* probe events */
	uint64_t allocations; /* successful ones, with realloc's new blocks */
	uint64_t frees;	      /* releases of held blocks, with realloc's old ones */
	uint64_t allocated_bytes, freed_bytes;
	uint64_t null_frees;
	uint64_t thread_exit_frees; /* of glibc's flush */
	uint64_t anomalies[ANOMALY_NR_KINDS];
	uint64_t entries_without_return, returns_without_entry;
	uint64_t entries[ENTRY_NR_ENDS]; /* @entries_without_return by reason */
	uint64_t returns_at_start; /* @returns_without_entry that are a thread's first event */
	/*
	 * realloc()'s among the other returns without entry. A held block may have been the old
	 * one.
	 */
	uint64_t unpaired_reallocs, last_unpaired_realloc_ns;
	uint64_t created_tasks, created_with_events; /* threads and processes */
	uint64_t clock_steps;	   /* a call returned on one CPU before it was entered on another */
	uint64_t blocks_unlocated; /* posix_memalign succeeded, but *memptr was not recorded */
	uint64_t blocks_dropped_by_exec;
	/* After finish: the allocator's own remaining mappings, without inherited ones. */
	uint64_t own_mappings, own_mapped_bytes;
	/* Forked children that forgot what they inherited, to limit memory. */
	uint64_t forgetful_children;
	/* In windows. Blocks that outlived their windows: unknown from then on; looked at; of
	 * these: gone by a look. Frees and realloc()s of blocks that were not known; looks at such.
	 */
	uint64_t unobserved_blocks, followed_blocks, gone_blocks, unobserved_frees;
	uint64_t looks, unknown_looks;
	uint64_t carried_blocks; /* of @allocations: before what was read (leakrec:held) */
};

/* The owner of a mapping, by its stack. */
enum mapping_owner {
	MAPPING_OWNER_UNKNOWN, /* there is no stack */
	MAPPING_IS_PROGRAMS,
	MAPPING_IS_SURELY_PROGRAMS, /* the stack has all frames, and none is of an open call */
	MAPPING_IS_RANKED, /* counts as the program's, whatever made it: analysis.ranks_own_mappings
			    */
	MAPPING_IS_OWN,	   /* the allocator's, the loader's or the C library's */
};

/* Counts of one kind of resource other than memory. */
struct resource_counts {
	const struct resource_kind *kind; /* NULL: nothing was counted */
	uint64_t gives, takes;		  /* of new handles; of held ones */
	uint64_t refs, unrefs;
	uint64_t failures;	/* calls that failed */
	uint64_t unknown_takes; /* of handles that were not held */
	uint64_t unpaired;	/* entries without returns, and returns without entries */
};

/* A change to a held block, as leakfollow shows it. */
struct heap_change {
	bool enters; /* the block begins to be held; false: it ends */
	struct heap_block block;
	struct heap_op op;
	/*
	 * The call that has released the block; with @enters, the call that seemed to, and has
	 * failed: realloc(). NULL: the block was allocated, or has ended otherwise, with its
	 * process for instance, by munmap(), or unseen.
	 */
	const struct heap_op *release;
};

/* Where events are missing from the recording. */
struct heap_losses {
	const void *context;
	/*
	 * True if an event of a time between the two may be missing. It is asked again at the end,
	 * when all losses are known. NULL: nothing is missing.
	 */
	bool (*may_miss)(const void *context, uint64_t from_ns, uint64_t to_ns);
};

#define HEAP_KIND_MEMORY "memory"

struct heap_observer {
	void *context;
	/*
	 * Called for each change to a held block, in time order, except for a child's changes to
	 * inherited blocks: these are its parent's.
	 */
	void (*on_change)(void *context, const struct heap_change *change);
	/* Called where the recording begins and ends, if leakrec has written that. Or NULL. */
	void (*on_time)(void *context, uint64_t time_ns);
	const char *kind; /* a resource's, or HEAP_KIND_MEMORY: only that kind; NULL: all */
};

#endif
