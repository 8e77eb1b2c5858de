/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How much memory the recorded processes had over time, by leakrec's samples of it
 * (leakrec:memory), beside what the recorded blocks took at the same moments. docs/memory.md tells
 * what may be concluded.
 */
#ifndef LEAKTOOLS_PARSER_MEMORY_USAGE_H
#define LEAKTOOLS_PARSER_MEMORY_USAGE_H

#include "common/schema/memory_values.h"
#include "parser/calls/heap_tracker.h"

#define MEMORY_MAX_POINTS 64 /* of a process; of more, every other one is dropped */

struct memory_point {
	uint64_t time_ns;
	uint64_t bytes[MEMORY_NR_VALUES];
	struct held_memory recorded; /* blocks that the process held then */
};

struct memory_process {
	pid_t pid;
	char comm[16]; /* at the last sample; the tracker may have forgotten it since */
	uint64_t turn; /* of the last sample */
	uint64_t nr_samples;
	struct memory_point first, last, peak; /* the peak is RSS's */
	struct memory_point points[MEMORY_MAX_POINTS];
	size_t nr_points;
	uint64_t step; /* samples between two points */
};

/* How much the processes of the last turn have grown since their first samples, in bytes. A
 * negative number: they have shrunk.
 */
struct memory_balance {
	size_t nr_processes; /* 0: nothing is known */
	size_t nr_ended;     /* others, which had ended or executed another program by then */
	uint64_t until_ns;   /* when the last sample was taken */
	int64_t rss;	     /* the sum of the others: */
	int64_t recorded;    /* held blocks, by their sizes */
	int64_t other;	     /* anonymous memory, less these blocks; also what is in swap */
	int64_t file, shared;
	int64_t swap; /* what was swapped out is not resident: it has the opposite sign */
	int64_t data; /* private writable mappings, touched or not */
	/*
	 * The most that recorded calls may have made of it, with what an allocator needs beside the
	 * blocks: all that was allocated meanwhile, and the most that was held at a time.
	 */
	int64_t allocated, most;
};

struct memory_usage;

/* NULL: out of memory. */
struct memory_usage *memory_usage_create(void);
void memory_usage_destroy(struct memory_usage *usage);

/* A recording begins: its turns are numbered from 1. */
void memory_usage_begin(struct memory_usage *usage);

/* Adds a sample of leakrec:memory. Ended processes make room. Returns 0 or -ENOMEM. */
int memory_usage_add(struct memory_usage *usage, const struct perf_sample *sample,
		     const struct heap_tracker *heaps);

/* Process @pid is a new one, or executes another program: what it had before is gone. */
void memory_usage_restart(struct memory_usage *usage, pid_t pid);

/* Adds up the processes that were sampled twice, the last time in the last turn. */
void memory_usage_balance(const struct memory_usage *usage, struct memory_balance *ret);

/* The most memory that the processes had, in RAM and swapped out, in bytes. 0: not known. */
uint64_t memory_usage_most(const struct memory_usage *usage);

/* The processes in the order in which they were seen; NULL after the last. @prev NULL: the first.
 */
const struct memory_process *memory_usage_next(const struct memory_usage *usage,
					       const struct memory_process *prev);

#endif
