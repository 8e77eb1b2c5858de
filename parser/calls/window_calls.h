/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Recordings in windows: allocations and frees are observed only while a window is open. Applies
 * leakrec's windows and looks to the heaps (docs/heap-model.md, "Windows").
 *
 * When a window closes, blocks that are held outlive it. leakrec looks at a sample of them. The
 * others are forgotten after a while, and are counted: they are unknown from the end of their
 * window on, neither held nor freed.
 */
#ifndef LEAKTOOLS_PARSER_WINDOW_CALLS_H
#define LEAKTOOLS_PARSER_WINDOW_CALLS_H

#include "parser/calls/heap_sink.h"

/* A window opens. All functions return 0 or -ENOMEM. */
int window_calls_open(struct heap_sink *sink, struct process_table *table, uint64_t time_ns);
/* The open window closes. No thread has an open call. */
int window_calls_close(struct heap_sink *sink, struct process_table *table,
		       const struct perf_sample *sample);
/* leakrec:look */
int window_calls_look(struct heap_sink *sink, struct process_table *table,
		      const struct perf_sample *sample);

/*
 * @block, of an earlier window, has left its heap: @op releases it, or allocates its address. So it
 * ended between the time when it was last seen and @op.
 */
int window_calls_end(struct heap_sink *sink, const struct heap_block *block,
		     const struct heap_op *op);

/* Process @pid ends or executes another program: nothing more will be seen of its blocks. */
int window_calls_end_process(struct heap_sink *sink, struct process_table *table, pid_t pid);

/*
 * After the last event: forgets the blocks without looks. Those of a window that closed with the
 * recording are held, as at the end of any other recording.
 */
int window_calls_finish(struct heap_sink *sink, struct process_table *table);

/*
 * Keeps the blocks of which it is known that they were held after their windows, or whose window is
 * still open. Without windows, these are all. Returns how many.
 */
size_t window_calls_keep_shown(const struct heap_sink *sink, struct heap_block *blocks, size_t nr);

#endif
