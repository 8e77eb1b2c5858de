/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A recording, read to its end: connects the reader (perf_input.h) with the stacks (stack_store.h)
 * and the heaps (heap_tracker.h). leakparse and leakfollow are two views of it.
 */
#ifndef LEAKTOOLS_PARSER_ANALYSIS_H
#define LEAKTOOLS_PARSER_ANALYSIS_H

#include "common/progress.h"
#include "parser/calls/heap_tracker.h"
#include "parser/analysis/intervals.h"
#include "parser/analysis/loss_windows.h"
#include "parser/analysis/mapping_owners.h"
#include "parser/perfdata/perf_input.h"
#include "unwind/stacks/stack_store.h"

struct analysis {
	struct resource_schemas resources; /* the calls that the recording tells of */
	struct stack_store *stacks;
	struct heap_tracker *heaps;
	struct perf_input_stats input;
	uint64_t lost;		/* samples that the kernel could not write */
	uint64_t lost_any_time; /* of these, the ones of which no window is known */
	/* Tasks of which others may have been lost: nobody knows how many. */
	uint64_t unguarded_tasks;
	struct loss_windows *loss_windows;
	struct intervals *intervals; /* told of marks, where the caller has set it */
	struct mapping_owners mapping_owners;
	uint64_t incomplete_chains; /* that whoever unwound them has marked */
	uint64_t start_ns;	    /* of the first event; 0: there was none */
	uint64_t end_ns;

	struct progress *progress; /* of reading; NULL: not to be shown */

	/*
	 * Set by the caller, to see what was held in between: nothing later is read than this long
	 * after the start, nor than the event of this number. 0: to the end.
	 */
	uint64_t until_ns, until_sequence;
	bool was_enough; /* there is more: one of these was reached */
	/* Set by the caller: what allocators map for themselves counts as the program's mappings.
	 */
	bool ranks_own_mappings;
};

/*
 * @observer may be NULL; its callbacks come while analysis_read() runs and may use
 * analysis->stacks. Returns 0 or -ENOMEM (reported).
 */
int analysis_init(struct analysis *analysis, const struct stack_store_options *options,
		  const struct heap_observer *observer);

/*
 * Reads the files of a session in their order (perf record --switch-output, one recording after the
 * other), or standard input where there are none. Returns 0 or a negative errno, reported; what was
 * read up to then is in @analysis.
 */
int analysis_read(struct analysis *analysis, const char *const *paths, size_t nr_paths);

/* The same in parts, for a reader of its own: what to give the records to, and the end of it. */
struct perf_consumer analysis_consumer(struct analysis *analysis);
/* After the last record. @err is what reading ended with; returns that, or -ENOMEM (reported). */
int analysis_finish(struct analysis *analysis, int err);

/* The stacks that end before the outermost frame, as far as that is known. */
uint64_t analysis_unwind_failures(const struct analysis *analysis);

void analysis_deinit(struct analysis *analysis);

#endif
