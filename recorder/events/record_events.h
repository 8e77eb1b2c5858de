/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The perf events of a recording, in two groups. Each is a libperf evlist with rings of its own.
 *
 *   side     A dummy event for MMAP2, COMM, FORK and EXIT records, and task:task_newtask, whose
 *            clone flags tell vfork from fork. Its rings are small and hold no samples of probes,
 *            so an overload cannot cost a mapping or a fork.
 *   probes   One event for each uprobe and system call.
 *
 * Every event is opened for each thread on each CPU, and the threads and processes that these
 * create inherit it. One event for each CPU is needed because the kernel maps no ring of an
 * inherited event that is not bound to a CPU.
 *
 * libperf's public interface shows no file descriptors. They are found in /proc/self/fd by the ids
 * that perf_evsel__read() gives.
 */
#ifndef LEAKTOOLS_RECORDER_RECORD_EVENTS_H
#define LEAKTOOLS_RECORDER_RECORD_EVENTS_H

#include "probes/plan/probe_set.h"
#include "recorder/events/context_breakers.h"
#include "recorder/events/record_config.h"
#include "recorder/events/sample_format.h"

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* One kind of event: an evsel, or an event that the recording programs write (bpf_recorder.h). */
struct record_event {
	struct perf_event_attr attr; /* as in the file */
	struct perf_evsel *evsel;    /* the evlist's, or NULL */
	char *name;		     /* "group:event", "dummy:HG" */
	const char *filter;	     /* tracefs' expression, or NULL */
	char *format;		     /* as in tracefs' format file; NULL: tracefs has it */
	uint64_t *ids;		     /* one for each CPU and thread */
	size_t nr_ids;
	/* If perf events record a mark: the mark, and the file that has it; else NULL. */
	const struct probe *mark;
	const struct probe_file *file;
	bool is_syscall; /* a tracepoint: BPF programs of another type, hit by other processes */
	bool has_stack;	 /* its samples have a callchain or a dump */
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
	struct context_breakers breakers; /* if perf events record named processes */
};

/*
 * Opens all events, disabled, for the registered probes of the sets, which must outlive @ret, and
 * the threads @tids, and maps the rings. Returns 0; -ESRCH if a thread has ended (not reported:
 * list the threads again and retry); other errors reported. Release with record_events_close() in
 * either case.
 */
int record_events_open(struct record_events *ret, const struct probe_set *const *probes,
		       size_t nr_probes, const struct record_config *config, const pid_t *tids,
		       size_t nr_tids);
void record_events_close(struct record_events *events);

/*
 * The same for events that have to be opened again. Closing many takes long: returns 0, or -EINTR
 * if a signal came meanwhile, and then they still have to be closed.
 */
int record_events_give_up(struct record_events *events);

/* Enables the events of a group. Returns 0, or -EINTR if a signal came meanwhile. */
int record_events_enable(struct record_group *group);

/* Raises the limit of open files to @wanted. Root may exceed the hard limit. */
void record_events_raise_fd_limit(size_t wanted);

/*
 * Adds an event that programs write to @events->probes. It has no perf event and no ring. Takes
 * over
 * @name ("group:event") and @format, which may be NULL if out of memory; @type is its attr.config.
 * Returns 0 or -ENOMEM.
 */
int record_events_add_written(struct record_events *events, const struct record_config *config,
			      char *name, char *format, uint64_t type, uint64_t id, bool has_stack);

/* The kernel's counts of the probes' perf events, with those of children. */
struct record_totals {
	uint64_t hits; /* each made a sample or lost one: the period is 1 */
	uint64_t lost; /* samples without room; 0 before Linux 6.0 */
};

struct record_totals record_events_totals(const struct record_events *events);

#endif
