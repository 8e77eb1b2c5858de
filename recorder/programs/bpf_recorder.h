/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The recording BPF programs (bpf_recorder.bpf.c), from user space: loading them, the places that
 * they watch, the links to the processes, the rings.
 *
 * A link (uprobe_multi, Linux 6.13 for sessions) covers all threads of a process, those to come and
 * what it execs included, and all probes of a file that are alike. It needs no event in tracefs and
 * goes with the recorder. What it does not cover is children: fork_follow.h.
 */
#ifndef LEAKTOOLS_RECORDER_BPF_RECORDER_H
#define LEAKTOOLS_RECORDER_BPF_RECORDER_H

#include "recorder/target_table/target_table_shared.h"
#include "recorder/bpf/bpf_recorder_shared.h"
#include "recorder/programs/bpf_ring.h"
#include "recorder/events/record_events.h"

#define PROGRAM_MAX_POINTS 64

/* A place to watch; its index is that of its struct program_site. */
struct program_place {
	const struct probe_file *file;
	uint64_t offset;	   /* in the file */
	const struct probe *entry; /* or the store; NULL: the entry is not recorded */
	/* NULL: there is no return, or it is not recorded. A PROBE_EXIT stands for all of them. */
	const struct probe *ret;
	/* It is watched at these of the programs' points instead, if there are any. */
	size_t first_point, nr_points;
};

/*
 * A point inside of a place's function (probes/sites/single_trap_points.h). Its site is at the
 * table's other end: program_point_site().
 */
struct program_point {
	const struct program_place *place;
	const struct outcome_point *outcome;
};

/* The events of a row of the schema, whatever the file; type 0: there is none. */
struct program_row {
	struct program_event entry, store, ret;
};

struct probe_programs {
	struct bpf_recorder_bpf *bpf;
	struct program_place places[PROGRAM_MAX_SITES];
	size_t nr_places;
	size_t nr_planned;  /* the first of these: the others are late files' */
	bool left_out_late; /* a file, for which there was no room */
	struct program_point points[PROGRAM_MAX_POINTS];
	size_t nr_points;
	struct program_row *rows;   /* by the schema table's order */
	struct program_ring *rings; /* of the CPUs that are there, by number; others are empty */
	size_t nr_rings;
	struct ring_buffer *wakeups;
	int *link_fds;
	size_t nr_links;
	uint64_t lost_id;
};

/* Where the point is in its file. */
uint64_t program_point_offset(const struct program_point *point);

/* The number of the @nth point's site. */
static inline size_t program_point_site(size_t nth)
{
	return PROGRAM_MAX_SITES - 1 - nth;
}

/*
 * Loads the programs. Returns 0; -EOPNOTSUPP where the kernel has not what it takes or does not
 * permit it, -EPROTONOSUPPORT where the kernel could crash if it preempts them (private_stack.h;
 * neither is reported: perf events do it, too); other errors reported. Release with
 * probe_programs_destroy().
 */
int probe_programs_create(const struct record_config *config, struct probe_programs **ret);

/* Ends all links; NULL is fine. */
void probe_programs_destroy(struct probe_programs *programs);

/*
 * Plans the places for the probes of the sets, which must outlive @programs, and adds their events
 * to @events. Where @only_registered[i], those that set i has not in tracefs are left out. Returns
 * 0 or a negative errno, reported.
 */
int probe_programs_plan(struct probe_programs *programs, const struct probe_set *const *sets,
			const bool *only_registered, size_t nr_sets,
			const struct record_config *config, struct record_events *events);

/*
 * Watches @file, which came while recording, in all recorded processes. It must outlive @programs.
 * Returns how many of its functions are watched, or a negative errno, reported.
 */
int probe_programs_add_late(struct probe_programs *programs, const struct probe_file *file);

/* Process @pid has so many pages of code: no more is no new code. */
void probe_programs_know_code(struct probe_programs *programs, pid_t pid, uint64_t pages);

/* The file is no new one any more; who maps it is not held for that. */
void probe_programs_know_file(struct probe_programs *programs, const struct program_file *file);

/* Watches process @pid, or with 0 all, those to come included. Returns 0 or a negative errno,
 * reported. */
int probe_programs_link(struct probe_programs *programs, pid_t pid);

/*
 * Runs the program for @site at each hit of the uprobe event that perf event @fd carries, and that
 * stands at @point of it. Returns a link, which the caller closes to end that and which keeps the
 * event open, or a negative errno, not reported.
 */
int probe_programs_attach(const struct probe_programs *programs, int fd, enum probe_point point,
			  size_t site);

/* What happens is recorded from the first to the second of these. */
void probe_programs_start(struct probe_programs *programs);
void probe_programs_stop(struct probe_programs *programs);

/* What the programs share with backpressure.h. */
struct gate_shared *probe_programs_gate(const struct probe_programs *programs);

/* The table of stack_bases.h, to be filled. */
unsigned long long *probe_programs_stack_tops(const struct probe_programs *programs);

/* Readable when a ring fills up or a process waits (POLLIN); and having seen that. */
int probe_programs_wakeup_fd(const struct probe_programs *programs);
void probe_programs_woken(struct probe_programs *programs);

/*
 * After draining CPU @cpu's ring: it may wake the recorder again, with the next sample that takes
 * it past the limit. Before that it would, for what is just being drained.
 */
void probe_programs_rearm(struct probe_programs *programs, size_t cpu);

/* Samples of CPU @cpu that found no room and that no record tells of; counted from anew. */
uint64_t probe_programs_take_lost(struct probe_programs *programs, size_t cpu);

/*
 * How often the kernel skipped a program at a tracepoint, because it was running on that CPU
 * already: each time, a system call, a fork or a new file may have gone unseen.
 */
uint64_t probe_programs_nr_skipped(const struct probe_programs *programs);

#endif
