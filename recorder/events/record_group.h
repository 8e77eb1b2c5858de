/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Perf events that write to the same rings: one libperf evlist. */
#ifndef LEAKTOOLS_RECORDER_RECORD_GROUP_H
#define LEAKTOOLS_RECORDER_RECORD_GROUP_H

#include "probes/plan/probe_file.h"

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>

#define RECORD_GROUP_RECENT 256

struct perf_cpu_map;
struct perf_thread_map;

/* One kind of event: an evsel, or an event that the recording programs write (bpf_recorder.h). */
struct record_event {
	struct perf_event_attr attr; /* as in the file */
	struct perf_evsel *evsel;    /* the evlist's; NULL: there is none, or it is closed */
	char *name;		     /* "group:event", "dummy:HG" */
	const char *filter;	     /* tracefs' expression, or NULL */
	char *format;		     /* as in tracefs' format file; NULL: tracefs has it */
	uint64_t *ids;		     /* one for each CPU and thread */
	size_t nr_ids;
	const struct probe_file *file; /* of a uprobe; else NULL */
	const struct probe *mark;      /* that the perf event records; else NULL */
	uint16_t caller_at; /* the offset in RAW of a field to correct (perf_samples.h); 0: none */
	bool is_syscall;    /* a tracepoint: BPF programs of another type, hit by other processes */
	bool has_stack;	    /* its samples have a callchain or a dump */
	bool has_dump;	    /* the kernel's have registers and a dump */
};

/* One ring: one CPU of one evlist. */
struct record_ring {
	struct perf_mmap *map;		      /* the evlist's */
	const char *data;		      /* its bytes; set with the first record */
	uint64_t offset;		      /* of the next record; does not wrap */
	uint64_t consumed;		      /* space up to here was given back to the kernel */
	uint64_t nr_lost;		      /* samples that found no room, as records say */
	uint64_t round_start;		      /* @offset when the round began */
	const struct perf_event_header *next; /* at @offset, seen but not consumed; or NULL */
	int *fds;			      /* events that write to it, one for each thread */
	size_t nr_fds;
	size_t current; /* the index of the fd to poll: the first one whose tasks are not all gone
			 */
};

/* The kernel's counts of the probes' perf events, with those of children. */
struct record_totals {
	uint64_t hits; /* each made a sample or lost one: the period is 1 */
	uint64_t lost; /* samples without room; 0 before Linux 6.0 */
};

struct record_group {
	struct perf_evlist *evlist;
	struct record_event *events;
	size_t nr_events;
	struct record_ring *rings;
	size_t nr_rings;
	size_t ring_bytes;
	uint32_t recent[RECORD_GROUP_RECENT]; /* recently found events, by their type's last bits */
};

/*
 * Opens all events of the group. Any user may have mapped a file that the kernel does not take
 * probes in: with @nr_left_out, it counts such files, and their events are removed, with a warning.
 * Events of files that are given up already are removed, too. Returns 0 or a negative errno, not
 * reported: -EINTR if a signal came.
 */
int record_group_open(struct record_group *group, struct perf_cpu_map *cpus,
		      struct perf_thread_map *threads, size_t *nr_left_out);

/* Closes the events, unmaps the rings, and frees what the group has. */
void record_group_close(struct record_group *group);

/* The event of the tracepoint @type, or NULL. */
const struct record_event *record_group_find_type(struct record_group *group, uint16_t type);

/* Warns that @nr files, the first of which is @file, are not recorded because of @err. */
void record_group_warn_left_out(const struct probe_file *file, size_t nr, int err);

/* Adds the counts of an event, which was opened for @nr_threads. */
void record_event_add_totals(const struct record_event *event, size_t nr_threads,
			     struct record_totals *totals);

#endif
