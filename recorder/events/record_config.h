/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What to record, and how: the recorder's options, which the command line sets. */
#ifndef LEAKTOOLS_RECORDER_RECORD_CONFIG_H
#define LEAKTOOLS_RECORDER_RECORD_CONFIG_H

#include "common/schema/syscall_schema.h"
#include "common/size_range.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum call_graph {
	CALL_GRAPH_FP,
	CALL_GRAPH_DWARF, /* registers and stack bytes, which are unwound */
	CALL_GRAPH_NONE,
};

enum on_overload {
	OVERLOAD_HOLD, /* stop the targets for a moment (backpressure.h) */
	OVERLOAD_DROP, /* let the kernel drop samples */
};

/* Which processes are recorded. */
enum record_scope {
	RECORD_PROCESSES,   /* the named ones, and their children */
	RECORD_SYSTEM_WIDE, /* all */
	RECORD_CGROUP, /* all in a cgroup and its descendants, also those that enter it later */
};

/* What records. */
enum record_by {
	RECORD_BY_BEST,	   /* the first of these that the kernel has and permits */
	RECORD_BY_SESSION, /* BPF programs on uprobe_multi links, sessions where a return counts */
	RECORD_BY_MULTI,   /* BPF programs on uprobe_multi links, two where a return counts */
	RECORD_BY_SINGLE,  /* BPF programs on perf events, one for each probe */
	RECORD_BY_PERF,	   /* perf events */
	RECORD_NR_WAYS,
};

#define RECORD_MAX_FILTERS 64

struct record_config {
	enum record_scope scope;
	int cgroup_fd; /* RECORD_CGROUP: its directory */
	enum on_overload on_overload;
	enum call_graph call_graph;
	bool free_stacks;    /* releases have stacks, not just their caller's address */
	uint32_t dump_bytes; /* CALL_GRAPH_DWARF: a multiple of 8; 0: the whole stack */
	bool raw_stacks;     /* CALL_GRAPH_DWARF: the file holds the dumps, for another unwinder */
	uint32_t ring_pages; /* a power of two */
	enum record_by by;
	bool in_windows; /* record in windows, by links that last as long; not RECORD_BY_PERF */
	bool no_heap;	 /* record no allocators, nor those mapped later */
	bool at_calls;	 /* record only some calls of allocators, with no_heap */
	bool has_sizes;	 /* record only requests of these sizes; not RECORD_BY_PERF */
	struct size_range sizes;
	unsigned int syscalls;			 /* enum syscall_group: the groups to record */
	const char *filters[RECORD_MAX_FILTERS]; /* "EVENT:EXPR"; RECORD_BY_PERF only */
	size_t nr_filters;
};

/* True if dumps are unwound while recording (live_unwinder.h): the file holds callchains. */
static inline bool record_config_unwinds(const struct record_config *config)
{
	return config->call_graph == CALL_GRAPH_DWARF && !config->raw_stacks;
}

/* True if the file holds dumps. */
static inline bool record_config_keeps_dumps(const struct record_config *config)
{
	return config->call_graph == CALL_GRAPH_DWARF && config->raw_stacks;
}

/* A record's size is 16 bits, and a sample holds more than the dump. */
#define RECORD_MAX_DUMP_BYTES 65000

/*
 * The size of a stack dump in bytes, or its maximum where a dump ends with the stack: that is what
 * programs write for leakrec's own unwinder.
 */
uint32_t record_config_dump_bytes(const struct record_config *config, bool by_programs);

#endif
