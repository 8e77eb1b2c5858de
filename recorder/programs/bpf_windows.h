/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Windows of a recording, as the programs and their links know them (windows.bpf.h). A window links
 * all processes of the target table, lets the programs record, and ends the links.
 *
 * For each place, the kernel waits until no process forks (percpu_down_write() of dup_mmap_sem,
 * register_for_each_vma(), kernel/events/uprobes.c), and at the end of a link until no CPU runs its
 * program any more (uprobe_unregister_sync(); Linux 6.12 to 6.18). The targets run on meanwhile. On
 * a preemptible kernel that covers programs that are preempted, too: uprobes run them under SRCU or
 * RCU Tasks Trace (handler_chain(), bpf_prog_run_array_uprobe()), whose readers may be preempted.
 */
#ifndef LEAKTOOLS_RECORDER_BPF_WINDOWS_H
#define LEAKTOOLS_RECORDER_BPF_WINDOWS_H

#include "recorder/programs/bpf_recorder.h"

/* What all windows have cost the targets so far. */
struct bpf_window_hits {
	uint64_t hits;	  /* of probes */
	uint64_t stepped; /* those among them that the kernel steps: a `ret` */
};

/*
 * Links the processes of the target table, as many as go with @max_hits, and lets programs record
 * from *@ret_opened_ns on (CLOCK_MONOTONIC), for @max_hits at most. The links of the last window
 * must be gone. Returns how many processes are recorded (0: the window is not open), or a negative
 * errno, reported. A process that has ended, or whose first thread has, is left out.
 *
 * After the first window, an error ends the recording only if it goes on for many windows. A file
 * that the kernel takes no probe in is given up, and a process that cannot be linked now is left
 * out of this window; either is reported once. Without descriptors or memory for more links, those
 * that are left come first in the next window.
 */
int bpf_window_open(struct bpf_recorder *recorder, uint64_t max_hits, uint64_t *ret_opened_ns);

/*
 * The share of the processes that the latest window has: with many, not all are probed at once, as
 * the first ones hit their probes meanwhile. All are probed in turn.
 */
double bpf_window_part(const struct bpf_recorder *recorder);

/* True if there is a process or a file that the open window has no links for. */
bool bpf_window_has_new(const struct bpf_recorder *recorder);

/* Lets the window last until @max_hits from now. */
void bpf_window_extend(struct bpf_recorder *recorder, uint64_t max_hits);

/* Closes the window now, unless a program has. */
void bpf_window_close(struct bpf_recorder *recorder);

/* When the window closed, by the recorder or by a program; 0: it is open. CLOCK_MONOTONIC. */
uint64_t bpf_window_closed_ns(const struct bpf_recorder *recorder);

/* How many hits there were while the latest window was open, give or take BPF_HITS_STEP a CPU. */
uint64_t bpf_window_nr_hits(const struct bpf_recorder *recorder);

/* Begins to end the links of the closed window, while this process goes on. */
void bpf_window_begin_unlink(struct bpf_recorder *recorder);

/*
 * True if the links are gone, and no program runs any more: the rings have all records of the
 * window. Then nothing is recorded until the next one.
 */
bool bpf_window_is_unlinked(struct bpf_recorder *recorder);

/* True from the close on until bpf_window_is_unlinked(). */
bool bpf_window_is_closing(const struct bpf_recorder *recorder);

struct bpf_window_hits bpf_window_hits(const struct bpf_recorder *recorder);

/* A function whose calls are counted. */
struct bpf_counted_entry {
	pid_t pid;
	int file_fd;	 /* borrowed */
	uint64_t offset; /* of its entry, in the file */
	bool is_stepped; /* not emulated */
	size_t nr;	 /* below BPF_MAX_COUNTED: which count */
};

/*
 * Begins to count the calls, from 0, also between windows. The @nr entries are of one process and
 * one file. Returns a descriptor, which ends it when it is closed, or a negative errno, not
 * reported.
 */
int bpf_window_count_calls(struct bpf_recorder *recorder, const struct bpf_counted_entry *entries,
			   size_t nr);
struct bpf_counted_calls bpf_window_counted_calls(const struct bpf_recorder *recorder, size_t nr);

/* The program that runs at most places. It is the recorder's. */
int bpf_window_program_fd(const struct bpf_recorder *recorder);

/*
 * Begins and ends to count the targets' transfers: calls that read, write, receive and send.
 * Meanwhile all processes' system calls take a little longer. Returns false if that is not
 * possible.
 */
bool bpf_window_begin_counting(struct bpf_recorder *recorder);
void bpf_window_end_counting(struct bpf_recorder *recorder);

/* How many were counted so far. */
uint64_t bpf_window_nr_transfers(const struct bpf_recorder *recorder);

#endif
