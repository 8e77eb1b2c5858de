/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The interface of the reader of perf.data: records decoded to host structs, in time order.
 * Pointers in them are valid only during the callback.
 */
#ifndef LEAKTOOLS_PARSER_PERF_EVENT_TYPES_H
#define LEAKTOOLS_PARSER_PERF_EVENT_TYPES_H

#include "common/schema/call_counts.h"
#include "common/schema/look_state.h"
#include "common/schema/memory_values.h"
#include "common/schema/reach_class.h"
#include "common/schema/resource_schema.h"
#include "common/schema/probe_schema.h"
#include "common/schema/segment_values.h"
#include "common/schema/syscall_schema.h"
#include "unwind/stacks/stack_store.h"

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* An event of the file: an attribute, with the tracepoint format that its config names. */
struct perf_event_desc {
	struct perf_event_attr attr;
	const char *system; /* "probe_libc"; NULL: not a tracepoint */
	const char *name;   /* "malloc_ret" */

	/* Set for a probe of the schema (probe_events.h). */
	const struct probe_schema *schema;
	enum probe_point point;
	/* Set for the entry or the exit of a system call of that table. */
	const struct syscall_schema *syscall;
	bool is_syscall_exit;
	bool is_newtask;    /* task:task_newtask */
	bool is_mark;	    /* LEAK_MARK(), or of leakrec itself: leakrec:mark and the next ones */
	bool is_probe_mark; /* LEAK_MARK() */
	bool is_doubt;	    /* leakrec:doubt: read like a mark, but it is none */
	bool is_bound;	    /* leakrec:recording, likewise: 0 at the start, 1 at the end */
	bool is_memory;	    /* leakrec:memory, likewise: its turn; args[] by enum memory_value */
	bool is_reach;	    /* leakrec:reach, likewise: its class; args[] by enum reach_value */
	bool is_holder;	    /* leakrec:holder, likewise: its number; mark_text: its name */
	bool is_window;	    /* leakrec:window, likewise: 1: it opens, 0: it has closed; args[]: enum
			       window_value */
	bool is_look;	    /* leakrec:look, likewise: enum look_state; args[] by enum look_value */
	bool is_calls;	    /* leakrec:calls, likewise: its number; args[] by enum calls_value */
	bool is_segment; /* leakrec:segment, likewise: its number; args[] by enum segment_value */
	bool is_held;	 /* leakrec:held, likewise: how many; mark_text: the function; blocks */
	bool is_unseen;	 /* leakrec:unseen, which is_holder, too: mark_text: what was not seen */
};

/* True for an allocation, a release or the like. */
static inline bool perf_event_is_operation(const struct perf_event_desc *desc)
{
	return desc->schema || desc->syscall;
}

/* Where and when a record was made. Fields that the file lacks are 0 (pid, tid: -1). */
struct perf_origin {
	uint64_t time_ns;
	uint64_t
		sequence; /* 1, 2, ...: the operation's number; other records have the last one's */
	pid_t pid, tid;
	uint32_t cpu;
};

#define PERF_MAX_ARGS SYSCALL_MAX_ARGS /* probed functions have fewer */

struct perf_sample {
	struct perf_origin origin;
	const struct perf_event_desc *event;
	uint64_t ip;

	const uint64_t *callchain; /* user addresses only, context markers removed */
	size_t nr_callchain;
	bool whole_chain; /* it begins with the probed function and its caller */
	bool has_dump;
	struct stack_dump dump;

	/*
	 * Decoded by the event's format if @event->schema is set. For @event->syscall: @args at the
	 * entry; @ret, @caller and @inside at the exit.
	 */
	uint64_t args[PERF_MAX_ARGS]; /* PROBE_ENTRY, _CALL; PROBE_STORE: args[block_arg] */
	uint64_t ret;		      /* PROBE_RETURN, _CALL, _EXIT: the value */
	uint64_t block;		      /* PROBE_STORE, HEAP_ALLOC_TO_PTR's _CALL: the new block */
	uint64_t caller;	      /* PROBE_ENTRY, _CALL: the return address; 0: not recorded */
	uint64_t probe_address;	 /* __probe_ip or __probe_func; PROBE_EXIT: that of the entry */
	uint64_t return_address; /* PROBE_RETURN, _CALL: __probe_ret_ip; also PROBE_EXIT */

	uint64_t inside; /* a probed function that the thread is in; 0: not known */

	/* event->is_newtask */
	pid_t newtask_pid; /* the new task's tid */
	uint64_t newtask_clone_flags;

	/* event->is_held: @mark_number times enum held_value, 64 bits each, not aligned */
	const uint8_t *held;

	uint64_t mark_number;		   /* event->is_mark; 0 for LEAK_MARK() */
	char mark_text[HOLDER_TEXT_BYTES]; /* event->is_probe_mark, is_holder: its name */
};

struct perf_mmap_record {
	struct perf_origin origin;
	struct stack_mapping mapping;
	pid_t tid;
	bool executable;
};

struct perf_task_record { /* FORK, EXIT */
	struct perf_origin origin;
	pid_t pid, ppid, tid, ptid;
};

struct perf_comm_record {
	struct perf_origin origin;
	pid_t pid, tid;
	bool exec;
	const char *comm;
};

struct perf_lost_record { /* LOST, LOST_SAMPLES */
	struct perf_origin origin;
	/* An event of the ring. NULL: neither the ring nor the time is known (LOST_SAMPLES). */
	const struct perf_event_desc *event;
	uint64_t lost;
};

struct block_prefetch;

/*
 * The consumer of a recording. Any callback may be NULL. A callback that returns non-zero ends the
 * reading, which returns that value.
 */
struct perf_consumer {
	void *context;
	/* Receives the calls of resources that the recording has. NULL: they are ignored. */
	struct resource_schemas *resources;
	/* The heap tracker's (block_prefetch.h), or NULL. This is not a callback for events. */
	const struct block_prefetch *block_prefetch;

	int (*on_sample)(void *context, const struct perf_sample *sample);
	int (*on_mmap)(void *context, const struct perf_mmap_record *record);
	int (*on_fork)(void *context, const struct perf_task_record *record);
	int (*on_exit)(void *context, const struct perf_task_record *record);
	int (*on_comm)(void *context, const struct perf_comm_record *record);
	int (*on_lost)(void *context, const struct perf_lost_record *record);
	int (*on_build_id)(void *context, const char *path, const uint8_t *build_id, uint8_t size);
	/* Called now and then while reading a file: @done of @total bytes are read. */
	void (*on_progress)(void *context, uint64_t done, uint64_t total);
	/* The recording's own name for a position in a file. */
	int (*on_name)(void *context, const char *path, uint64_t file_offset, const char *function,
		       uint64_t function_offset);
};

#endif
