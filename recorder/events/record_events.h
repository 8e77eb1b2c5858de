/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The perf events of a recording, in two groups. Each is a libperf evlist with rings of its own.
 *
 *   side     A dummy event for MMAP2, COMM, FORK and EXIT records, and task:task_newtask, whose
 *            clone flags tell vfork from fork. Its rings are small and hold no samples of probes,
 *            so an overload cannot cost a mapping or a fork.
 *   probes   One event for each uprobe and system call. The rings belong to another dummy event,
 *            because those of a file may be closed (event_removal.h).
 *
 * Every event is opened for each thread on each CPU, and the threads and processes that these
 * create inherit it. One event for each CPU is needed because the kernel maps no ring of an
 * inherited event that is not bound to a CPU. For many threads, side events belong to CPUs only
 * (attach.h).
 *
 * libperf's public interface shows no file descriptors. They are found in /proc/self/fd by the ids
 * that perf_evsel__read() gives.
 */
#ifndef LEAKTOOLS_RECORDER_RECORD_EVENTS_H
#define LEAKTOOLS_RECORDER_RECORD_EVENTS_H

#include "probes/plan/probe_set.h"
#include "recorder/events/context_breakers.h"
#include "recorder/events/record_config.h"
#include "recorder/events/record_group.h"
#include "recorder/events/sample_format.h"
#include "recorder/events/side_filter.h"

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct record_events {
	struct record_group side;
	struct side_filter *filter; /* of @side; NULL: all of its records are wanted */
	struct record_group probes;
	size_t nr_threads;
	size_t nr_left_out;		  /* files of @probes, if all processes are recorded */
	struct context_breakers breakers; /* if perf events record named processes */
	struct record_totals removed;	  /* the totals of events that are closed */
};

/*
 * Opens all events, disabled, for the registered probes of the sets, which must outlive @ret, and
 * the threads @tids (-1: all, by events of CPUs), and maps the rings. If all processes are
 * recorded, files whose events cannot be opened are left out, with a warning, unless none is left.
 * Returns 0; -ESRCH if a thread has ended (not reported: list the threads again and retry); other
 * errors reported. Release with record_events_close() in either case.
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

struct record_totals record_events_totals(const struct record_events *events);

#endif
