/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Analyses a recording: connects the reader (perf_input.h) with the stacks (stack_store.h) and the
 * heaps (heap_tracker.h). leakparse and leakfollow show its results.
 */
#ifndef LEAKTOOLS_PARSER_ANALYSIS_H
#define LEAKTOOLS_PARSER_ANALYSIS_H

#include "common/progress.h"
#include "parser/calls/heap_tracker.h"
#include "parser/analysis/intervals.h"
#include "parser/analysis/loss_windows.h"
#include "parser/analysis/mapping_owners.h"
#include "parser/analysis/memory_usage.h"
#include "parser/analysis/reach.h"
#include "parser/perfdata/perf_input.h"
#include "parser/windows/call_counts.h"
#include "unwind/stacks/stack_store.h"

/* Tells the caller, while a recording is read, that @every_ns more of it have passed. */
struct analysis_ticks {
	uint64_t every_ns; /* 0: never */
	/*
	 * The analysis is what a recording that ends here would give. Periods without events are
	 * passed over. Returns 0 to go on, 1 if enough was read, or a negative errno.
	 */
	int (*on_tick)(void *context);
	void *context;
	uint64_t at_ns; /* during a tick, or where one has ended the reading: since the start */
	uint64_t nr;	/* so many periods have passed */
};

struct analysis {
	struct resource_schemas resources; /* the recording's calls on resources */
	struct stack_store *stacks;
	struct heap_tracker *heaps;
	struct perf_input_stats input;
	uint64_t lost;		/* samples that the kernel could not write */
	uint64_t lost_any_time; /* the ones of @lost without a known window */
	uint64_t left_out;	/* the ones of @lost_any_time that leakrec had no time to show */
	bool may_miss;		/* events may be missing that are in no count */
	/* Tasks and files whose events may have been lost; the number of events is unknown. */
	uint64_t unguarded_tasks;
	struct loss_windows *loss_windows;
	struct intervals *intervals; /* set by the caller; gets the marks; NULL: none */
	struct mapping_owners mapping_owners;
	struct memory_usage *memory;
	struct reach *reach;	    /* what a scan has said of the blocks */
	struct call_counts calls;   /* counted between windows, too */
	bool has_mappings;	    /* mmap() and the like were recorded, and called */
	uint64_t incomplete_chains; /* callchains that the recorder marked as incomplete */
	/*
	 * The bounds of the recording that leakrec has written, else the times of the first and the
	 * last event; 0: there was none. With @until_ns, @end_ns is that moment.
	 */
	uint64_t start_ns, end_ns;
	uint64_t known_end_ns; /* leakrec has written that it recorded until then at least; or 0 */

	/*
	 * Pauses between files that are longer than any within the files before: a file between
	 * them may be missing. They are loss windows.
	 */
	size_t nr_gaps;
	uint64_t longest_gap_ns;
	/* Private to analysis_read(), which finds these pauses. */
	struct {
		const char *path;
		uint64_t start_ns, start_before_ns; /* of this file, and the one before; 0: none */
		uint64_t longest_pause_ns;	    /* within files */
	} file;

	/* A recording in segments (docs/segments.md). */
	struct {
		uint32_t first, last; /* numbers; 0: it is in no segments */
		bool takes_state;     /* of the current one: it is the first */
		uint64_t started_ns;  /* when the recording began: before the first one, perhaps */
		uint64_t one_of;      /* one in so many of the blocks from before is known */
		uint64_t without_stack; /* so many of these, or fewer, are not */
		uint64_t out_of_order;	/* events before: not all of these blocks may be held */
		uint64_t lost_before;	/* events, before the first one; not in @lost */
	} segments;

	struct progress *progress; /* shows how much was read; NULL: not shown */

	/*
	 * Set by the caller, for an earlier state: reading stops this long after the start, or
	 * after the operation of this number. 0: at the end.
	 */
	uint64_t until_ns, until_sequence;
	struct analysis_ticks ticks; /* set by the caller */
	bool was_enough; /* reading stopped at @until_ns or @until_sequence, or at a tick */
	/* Set by the caller: the allocators' own mappings count as the program's. */
	bool ranks_own_mappings;
};

/*
 * @observer may be NULL. Its callbacks are called during analysis_read() and may use
 * analysis->stacks. Returns 0 or -ENOMEM (reported).
 */
int analysis_init(struct analysis *analysis, const struct stack_store_options *options,
		  const struct heap_observer *observer);

/*
 * Reads the files of a session in order (perf record --switch-output, one recording after the
 * other), the segments in a directory (leakrec --keep), or standard input if there are none.
 * Returns 0 or a negative errno (reported); -EXDEV for files of different recordings, or in the
 * wrong order. @analysis then holds what was read.
 */
int analysis_read(struct analysis *analysis, const char *const *paths, size_t nr_paths);

/*
 * For a caller that reads by itself: the consumer for the records. Call analysis_finish() after the
 * last one.
 */
struct perf_consumer analysis_consumer(struct analysis *analysis);
/* @err is the result of reading. Returns it, or -ENOMEM (reported). */
int analysis_finish(struct analysis *analysis, int err);

/* So many tasks and files were unguarded so far. The recording says it only at its end. */
static inline void analysis_note_unguarded(struct analysis *analysis, uint64_t nr)
{
	if (nr > analysis->unguarded_tasks)
		analysis->unguarded_tasks = nr;
}

/*
 * True if allocations and frees were observed only in a part of the time: leakrec --budget. A quiet
 * program is observed all the time.
 */
bool analysis_is_in_windows(const struct analysis *analysis);
/* The part of the recording in which they were observed, 0 to 1. */
double analysis_observed_share(const struct analysis *analysis);

/* The number of stacks known to end before the outermost frame. */
uint64_t analysis_unwind_failures(const struct analysis *analysis);

void analysis_deinit(struct analysis *analysis);

#endif
