/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The flight recorder (--ring, --when; docs/segments.md): decides when what is in memory is
 * written. SIGUSR2 has it written at once; conditions do at most once a minute, or once in the time
 * that the memory holds. One that is met sooner waits that long, and what it is about is still
 * there.
 */
#ifndef LEAKTOOLS_RECORDER_FLIGHT_H
#define LEAKTOOLS_RECORDER_FLIGHT_H

#include "recorder/conditions/condition_sources.h"
#include "recorder/conditions/process_ends.h"
#include "recorder/segments/segments.h"

/* What conditions may have written into a directory, in all recordings: disks do not fill. */
#define FLIGHT_MAX_WRITTEN 32

/* Zero it before use, with the descriptors of @sources -1. */
struct flight {
	struct segments *segments;
	struct memory_samples *memory;
	int signal_fd;
	struct condition conditions[CONDITIONS_MAX];
	size_t nr_conditions;
	struct condition_sources sources;
	struct process_ends ends;
	uint64_t check_ns;    /* when to measure again */
	uint64_t interval_ns; /* between what conditions have written */
	uint64_t write_ns;    /* when they may have something written again */
	uint32_t nr_written;  /* because of them, also by earlier recordings */
	const char *waiting;  /* the first one that is met, until it has its way; or NULL */
	char ended_by[32];    /* the reason "signal-11", while it waits */
	char asked_for[64];   /* the reason that @segments has */
	bool told_left_out;
};

/* What it needs of a recording. */
struct flight_of {
	struct segments *segments; /* in memory */
	const struct segment_limits *limits;
	struct memory_samples *memory; /* of the recorded processes */
	const char *const *when;       /* conditions that can be parsed, CONDITIONS_MAX at most */
	size_t nr_when;
	int signal_fd; /* readable when SIGUSR2 has come */
	int cgroup_fd; /* of the recorded cgroup; -1: that of @pid */
	pid_t pid;
};

/* The recording begins. Returns 0 or a negative errno, reported. */
int flight_start(struct flight *flight, const struct flight_of *of);
void flight_deinit(struct flight *flight);

/* In each round: has the memory written if it is time. Returns 0 or the writer's error. */
int flight_serve(struct flight *flight, struct perf_writer *writer);

/* True if it is of interest how processes end. The right to trace them is needed for that. */
bool flight_watches_ends(const struct flight *flight);

/* To which processes that are forked later belong, if their ends are of interest; else NULL. */
struct process_ends *flight_ends(struct flight *flight);

/*
 * The recording has ended; @are_gone: because the processes have. Returns a reason to write what is
 * in memory, or NULL.
 */
const char *flight_end(struct flight *flight, bool are_gone);

#endif
