/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The perf events of a recording, in two libperf evlists with rings of their own:
 *
 *   side    what happens to the tasks: a dummy event for MMAP2, COMM, FORK and EXIT records, and
 *           task:task_newtask, whose clone flags tell vfork from fork. Its rings are small and
 * never share space with samples, so that an overload cannot cost a mapping or a fork. probes  one
 * event for each uprobe.
 *
 * Every event is opened for each thread on each CPU and is inherited by the threads and processes
 * that these create: the kernel maps no ring of an inherited event that is not bound to a CPU.
 *
 * libperf's public interface shows no file descriptors; they are found among /proc/self/fd by the
 * ids that perf_evsel__read() gives.
 */
#ifndef LEAKTOOLS_RECORDER_RECORD_EVENTS_H
#define LEAKTOOLS_RECORDER_RECORD_EVENTS_H

#include "common/size_range.h"
#include "common/schema/syscall_schema.h"
#include "probes/plan/probe_set.h"
#include "recorder/events/context_breakers.h"

#include <asm/perf_regs.h>
#include <assert.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum call_graph {
	CALL_GRAPH_FP,
	CALL_GRAPH_DWARF, /* registers and stack bytes, which are unwound */
	CALL_GRAPH_NONE,
};

enum on_overload {
	OVERLOAD_HOLD, /* hold the targets back (backpressure.h) */
	OVERLOAD_DROP, /* let the kernel drop samples */
};

/* Which processes are recorded. */
enum record_scope {
	RECORD_PROCESSES,   /* those that were named, and what they fork */
	RECORD_SYSTEM_WIDE, /* all */
	RECORD_CGROUP,	    /* all in a cgroup and those below it, whenever they come there */
};

#define RECORD_MAX_FILTERS 64

struct record_config {
	enum record_scope scope;
	int cgroup_fd; /* RECORD_CGROUP: its directory */
	enum on_overload on_overload;
	enum call_graph call_graph;
	bool free_stacks;    /* releases have stacks, too, not just their caller's address */
	uint32_t dump_bytes; /* CALL_GRAPH_DWARF: a multiple of 8; 0: as many as are needed */
	bool raw_stacks;     /* the same: written as they are, for others to unwind */
	uint32_t ring_pages; /* a power of two */
	bool perf_events;    /* record by perf events also where BPF programs could */
	bool no_heap;	     /* no allocators, nor those that come later */
	bool has_sizes;	     /* only blocks of these sizes, as asked for; programs only */
	struct size_range sizes;
	unsigned int syscalls; /* enum syscall_group: of these, system calls are recorded, too */
	const char *filters[RECORD_MAX_FILTERS]; /* "EVENT:EXPR"; perf events only */
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
 * The bytes of a stack that a dump holds, or may hold where it goes as far as the stack does: what
 * programs write that leakrec unwinds.
 */
uint32_t record_config_dump_bytes(const struct record_config *config, bool by_programs);

/* One kind of event: an evsel, or what the recording programs write (bpf_recorder.h). */
struct record_event {
	struct perf_event_attr attr; /* as the recording has it */
	struct perf_evsel *evsel;    /* the evlist's, or NULL */
	char *name;		     /* "group:event", "dummy:HG" */
	const char *filter;	     /* tracefs' expression, or NULL */
	char *format;		     /* its fields, as tracefs tells them; NULL: tracefs does */
	uint64_t *ids;		     /* one for each CPU and thread */
	size_t nr_ids;
	bool is_syscall; /* a tracepoint that others hit, too, and whose programs are of another
			    type */
	bool has_stack;	 /* its samples carry a callchain or a dump */
};

/* One ring: one CPU of one evlist. */
struct record_ring {
	struct perf_mmap *map; /* the evlist's */
	const char *data;      /* its bytes; known with the first record */
	uint64_t offset;       /* of the next record, counted on when the ring wraps */
	uint64_t consumed;     /* up to where the space was given back to the kernel */
	uint64_t round_start;  /* @offset when the round began */
	const struct perf_event_header *next; /* at @offset, seen but not taken; or NULL */
	int *fds;			      /* events that write to it, one for each thread */
	size_t nr_fds;
	size_t current; /* the fd to poll: the first whose tasks are not all gone */
};

struct record_group {
	struct perf_evlist *evlist;
	struct record_event *events;
	size_t nr_events;
	struct record_ring *rings;
	size_t nr_rings;
	size_t ring_bytes;
};

struct record_events {
	struct record_group side;
	struct record_group probes;
	size_t nr_threads;
	struct context_breakers breakers; /* where perf events record named processes */
};

/*
 * True if the kernel swaps the perf contexts of a process and its forked child, so that inherited
 * events get lost (context_breakers.h).
 */
bool record_events_swap_contexts(void);

/*
 * Opens all events, disabled, for the registered probes of the sets and the threads @tids, and maps
 * the rings. Returns 0; -ESRCH when a
 * thread of the list is gone (nothing is reported: list them again and retry); other errors
 * reported. Release with record_events_close() in either case.
 */
int record_events_open(struct record_events *ret, const struct probe_set *const *probes,
		       size_t nr_probes, const struct record_config *config, const pid_t *tids,
		       size_t nr_tids);
void record_events_close(struct record_events *events);

/* Makes room for @wanted open files; events are many. Root may go beyond the hard limit. */
void record_events_raise_fd_limit(size_t wanted);

/* True if samples of @probe, which is none at a return, carry a stack, if there are to be any. */
bool record_events_entry_has_stack(const struct probe *probe, const struct record_config *config);

/* The same of a system call's entry or return. */
bool record_events_syscall_has_stack(const struct syscall_schema *schema, bool is_exit,
				     const struct record_config *config);

/*
 * Adds to @events->probes an event that programs write: without perf events or rings of its own.
 * Takes over @name ("group:event") and @format; @type is its attr.config. Returns 0 or -ENOMEM.
 */
int record_events_add_written(struct record_events *events, const struct record_config *config,
			      char *name, char *format, uint64_t type, uint64_t id, bool has_stack);

/* The kernel's own counts of the probes' perf events, children's included. */
struct record_totals {
	uint64_t hits; /* each makes a sample, or is lost: the period is 1 */
	uint64_t lost; /* that found no room; 0 before Linux 6.0 */
};

struct record_totals record_events_totals(const struct record_events *events);

/*
 * What every event records, and the trailer that this makes for records other than samples. The
 * instruction is there for perf script, which shows its field only if every event has it.
 */
#define RECORD_SAMPLE_TYPE                                                                         \
	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |            \
	 PERF_SAMPLE_CPU)
#define RECORD_SAMPLE_TIME_OFFSET 32 /* header, identifier, instruction, thread */

/* The registers that an unwinder needs: all general ones, the instruction and stack pointers. */
#if defined(__x86_64__)
#define RECORD_REG_SP PERF_REG_X86_SP
/* Of these, the ones that a function leaves to its caller as they were. */
#define RECORD_CALL_REGS_MASK                                                                      \
	((1ULL << PERF_REG_X86_BX) | (1ULL << PERF_REG_X86_BP) | (1ULL << PERF_REG_X86_SP) |       \
	 (1ULL << PERF_REG_X86_IP) | (1ULL << PERF_REG_X86_R12) | (1ULL << PERF_REG_X86_R13) |     \
	 (1ULL << PERF_REG_X86_R14) | (1ULL << PERF_REG_X86_R15))
#define RECORD_REGS_MASK                                                                           \
	(((1ULL << PERF_REG_X86_64_MAX) - 1) &                                                     \
	 ~((1ULL << PERF_REG_X86_DS) | (1ULL << PERF_REG_X86_ES) | (1ULL << PERF_REG_X86_FS) |     \
	   (1ULL << PERF_REG_X86_GS)))
#elif defined(__aarch64__)
#define RECORD_REG_SP	      PERF_REG_ARM64_SP
#define RECORD_REGS_MASK      ((1ULL << PERF_REG_ARM64_MAX) - 1)
#define RECORD_CALL_REGS_MASK RECORD_REGS_MASK
#else
#error "which registers does this architecture's unwinder need?"
#endif

struct record_trailer {
	uint32_t pid, tid;
	uint64_t time_ns;
	uint32_t cpu, reserved;
	uint64_t id;
};

static_assert(sizeof(struct record_trailer) == 32, "sample_id of RECORD_SAMPLE_TYPE");

#endif
