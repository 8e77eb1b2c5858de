/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the heap tracker counts and reports (heap_tracker.h). */
#ifndef LEAKTOOLS_PARSER_TRACKER_TYPES_H
#define LEAKTOOLS_PARSER_TRACKER_TYPES_H

#include "common/schema/resource_schema.h"
#include "parser/heap/heap_anomaly.h"

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

#endif
