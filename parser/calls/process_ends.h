/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What becomes of the blocks of a process that executes another program, or exits. Both end its
 * memory. An exec drops the blocks. After an exit they stay listed, because nothing released them,
 * but observers and the counts over time see them end.
 *
 * They see the end of a process when anything else happens after it. So what the last processes
 * held is what was held at the end of the recording.
 */
#ifndef LEAKTOOLS_PARSER_PROCESS_ENDS_H
#define LEAKTOOLS_PARSER_PROCESS_ENDS_H

#include "parser/calls/heap_sink.h"

/* Zero it before use. */
struct process_ends {
	struct process *untold; /* processes that have exited, in time order */
	uint64_t sequence;	/* of the last operation before they did */
};

/* The last thread of @process has exited, at @origin. */
void process_ends_note(struct process_ends *ends, struct process *process,
		       const struct perf_origin *origin);

/* Something else happens: tells of the processes noted so far. Returns 0 or -ENOMEM. */
int process_ends_tell(struct process_ends *ends, struct heap_sink *sink);

/*
 * @process, if its exit was told, has another event, at @origin: its blocks begin to be held again.
 */
void process_ends_undo(struct heap_sink *sink, struct process *process,
		       const struct perf_origin *origin);

/* The process of @thread executes another program, at @record. Returns 0 or -ENOMEM. */
int process_ends_exec(struct heap_sink *sink, struct process_table *table, struct thread *thread,
		      const struct perf_comm_record *record);

/* Drops the blocks of all processes whose exit was told. Returns 0 or -ENOMEM. */
int process_ends_forget(struct heap_sink *sink, struct heap_spaces *spaces);

#endif
