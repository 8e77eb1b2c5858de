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

#define BPF_REC_MAX_POINTS 64

/* A place to watch; its index is that of its struct bpf_site. */
struct bpf_place {
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
 * table's other end: bpf_point_site().
 */
struct bpf_point {
	const struct bpf_place *place;
	const struct single_trap_point *outcome;
};

/* The events of a row of the schema, whatever the file; type 0: there is none. */
struct bpf_row {
	struct bpf_event entry, store, ret;
};

struct bpf_recorder {
	struct bpf_recorder_bpf *bpf;
	struct bpf_place places[BPF_REC_MAX_SITES];
	size_t nr_places;
	size_t nr_planned;  /* the first of these: the others are late files' */
	bool left_out_late; /* a file, for which there was no room */
	struct bpf_point points[BPF_REC_MAX_POINTS];
	size_t nr_points;
	struct bpf_row *rows;	/* by the schema table's order */
	struct bpf_ring *rings; /* of the CPUs that are there, by number; others are empty */
	size_t nr_rings;
	struct ring_buffer *wakeups;
	int *link_fds;
	size_t nr_links;
	uint64_t lost_id;
};

/* Where the point is in its file. */
uint64_t bpf_point_offset(const struct bpf_point *point);

/* The number of the @nth point's site. */
static inline size_t bpf_point_site(size_t nth)
{
	return BPF_REC_MAX_SITES - 1 - nth;
}

/*
 * Loads the programs. Returns 0; -EOPNOTSUPP where the kernel has not what it takes or does not
 * permit it, -EPROTONOSUPPORT where the kernel could crash if it preempts them (private_stack.h;
 * neither is reported: perf events do it, too); other errors reported. Release with
 * bpf_recorder_destroy().
 */
int bpf_recorder_create(const struct record_config *config, struct bpf_recorder **ret);

/* Ends all links; NULL is fine. */
void bpf_recorder_destroy(struct bpf_recorder *programs);

/*
 * Plans the places for the probes of the sets, which must outlive @programs, and adds their events
 * to @events. Where @only_registered[i], those that set i has not in tracefs are left out. Returns
 * 0 or a negative errno, reported.
 */
int bpf_recorder_plan(struct bpf_recorder *programs, const struct probe_set *const *sets,
		      const bool *only_registered, size_t nr_sets,
		      const struct record_config *config, struct record_events *events);

/*
 * Watches @file, which came while recording, in all recorded processes. It must outlive @programs.
 * Returns how many of its functions are watched, or a negative errno, reported.
 */
int bpf_recorder_add_late(struct bpf_recorder *programs, const struct probe_file *file);

/* Process @pid has so many pages of code: no more is no new code. */
void bpf_recorder_know_code(struct bpf_recorder *programs, pid_t pid, uint64_t pages);

/* The file is no new one any more; who maps it is not held for that. */
void bpf_recorder_know_file(struct bpf_recorder *programs, const struct bpf_file *file);

/* Watches process @pid, or with 0 all, those to come included. Returns 0 or a negative errno,
 * reported. */
int bpf_recorder_link(struct bpf_recorder *programs, pid_t pid);

/*
 * Runs the program for @site at each hit of the uprobe event that perf event @fd carries, and that
 * stands at @point of it. Returns a link, which the caller closes to end that and which keeps the
 * event open, or a negative errno, not reported.
 */
int bpf_recorder_attach(const struct bpf_recorder *programs, int fd, enum probe_point point,
			size_t site);

/* What happens is recorded from the first to the second of these. */
void bpf_recorder_start(struct bpf_recorder *programs);
void bpf_recorder_stop(struct bpf_recorder *programs);

/* What the programs share with backpressure.h. */
struct target_table *bpf_recorder_gate(const struct bpf_recorder *programs);

/* The table of stack_bases.h, to be filled. */
unsigned long long *bpf_recorder_stack_tops(const struct bpf_recorder *programs);

/* Readable when a ring fills up or a process waits (POLLIN); and having seen that. */
int bpf_recorder_wakeup_fd(const struct bpf_recorder *programs);
void bpf_recorder_woken(struct bpf_recorder *programs);

/*
 * After draining CPU @cpu's ring: it may wake the recorder again, with the next sample that takes
 * it past the limit. Before that it would, for what is just being drained.
 */
void bpf_recorder_rearm(struct bpf_recorder *programs, size_t cpu);

/* Samples of CPU @cpu that found no room and that no record tells of; counted from anew. */
uint64_t bpf_recorder_take_lost(struct bpf_recorder *programs, size_t cpu);

/*
 * How often the kernel skipped a program at a tracepoint, because it was running on that CPU
 * already: each time, a system call, a fork or a new file may have gone unseen.
 */
uint64_t bpf_recorder_nr_skipped(const struct bpf_recorder *programs);

#endif
