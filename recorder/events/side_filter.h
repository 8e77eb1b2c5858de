/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Picks the recorded processes' records out of side events that belong to CPUs (attach.h). Such
 * events tell of all processes, and nothing of the others may reach the file.
 *
 * A process is recorded if it was named, or if a recorded one forked it: its FORK record decides,
 * until another FORK record gives the process id away anew. For that, records have to come in the
 * order of time, whatever ring they were in. So a round keeps the records from before it began,
 * sorts them, and then takes them. None is missing: what a process does comes after its FORK record
 * was written (copy_process(), kernel/fork.c, calls perf_event_fork() before the process runs,
 * Linux 6.1 to 6.18), and the rings were read after that.
 *
 * It also notices that all recorded processes have ended. A descriptor (pidfd) watches one of them,
 * and the next one when that has ended.
 */
#ifndef LEAKTOOLS_RECORDER_SIDE_FILTER_H
#define LEAKTOOLS_RECORDER_SIDE_FILTER_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct side_filter;

/* For the processes @pids. NULL: out of memory. side_filter_destroy() accepts NULL. */
struct side_filter *side_filter_create(const pid_t *pids, size_t nr_pids);
void side_filter_destroy(struct side_filter *filter);

/* The time of a side event's record, which holds what RECORD_SAMPLE_TYPE says. */
uint64_t side_filter_time_ns(const struct perf_event_header *record);

/* Copies a record. Returns 0 or -ENOMEM. */
int side_filter_keep(struct side_filter *filter, const struct perf_event_header *record);

/* Puts in order what was kept. After that, no record is kept until all have been taken. */
void side_filter_sort(struct side_filter *filter);

/*
 * Takes the next record of a recorded process, or one that tells of losses. It is valid until the
 * next record is kept. NULL: there is none.
 */
const struct perf_event_header *side_filter_next(struct side_filter *filter);

/* Readable when the watched process has ended; -1: none is watched. */
int side_filter_fd(const struct side_filter *filter);

/*
 * True if no recorded process lives. Call it once between two rounds: the first time that none is
 * found, a round has to look for children that the last one has forked.
 */
bool side_filter_have_all_ended(struct side_filter *filter);

#endif
