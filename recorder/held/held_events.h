/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which samples are about blocks, and what they say: the part of a sample that held_blocks.h needs.
 * Events are known by their names and formats, as readers of the recording know them, so those of
 * BPF programs and of perf events are the same here.
 */
#ifndef LEAKTOOLS_RECORDER_HELD_EVENTS_H
#define LEAKTOOLS_RECORDER_HELD_EVENTS_H

#include "common/schema/probe_schema.h"
#include "recorder/bpf/samples_shared.h"

/* A field: its offset in the raw data, and its size; 0: the event has none. */
struct held_field {
	uint16_t offset, size_bytes;
};

/* An event of a function that allocates or releases. */
struct held_event_type {
	const struct probe_schema *schema;
	enum probe_point point;
	struct held_field args[PROBE_MAX_ARGS], ret, stored, caller, probe, from_entry;
};

struct held_event_types {
	struct held_event_type *types;
	size_t nr;
	uint16_t *index; /* by common_type, 65,536: plus 1; 0: another event */
};

enum held_event_kind {
	HELD_CALL, /* a sample */
	HELD_FORK, /* a process begins */
	HELD_EXEC,
	HELD_THREAD_END,
};

/* What is applied to the blocks, in the order of times. */
struct held_event {
	uint64_t time_ns;
	uint64_t nr;			    /* the order of arrival, for events of one time */
	const struct held_event_type *type; /* of HELD_CALL */
	enum held_event_kind kind;
	pid_t pid, tid;
	uint64_t size_bytes, block; /* of the call's arguments; of a store, where it stores */
	uint64_t result;	    /* the return value */
	uint64_t stored;	    /* HEAP_ALLOC_TO_PTR: the new block; 0: not known */
	uint64_t return_address;    /* of the call; 0: not known */
	uint64_t probe;		    /* the address of the probe of the entry; 0: not known */
	uint64_t site;		    /* a hash of the stack's innermost frames */
};

void held_event_types_deinit(struct held_event_types *types);

/*
 * Adds the event of common_type @type if it is about blocks. @name is "group:event", @format is the
 * text of its format file. Returns 0 or -ENOMEM.
 */
int held_event_types_add(struct held_event_types *types, uint16_t type, const char *name,
			 const char *format);

/*
 * Reads @sample, whose raw data begin at @raw, inside of it. Returns false if it is of another
 * event, or is cut.
 */
bool held_event_read(const struct held_event_types *types, const struct perf_event_header *sample,
		     const struct raw_head *raw, struct held_event *ret);

/* Reads a FORK, EXIT or COMM record. Returns false if it changes no process and ends no thread. */
bool held_event_read_task(const struct perf_event_header *record, struct held_event *ret);

#endif
