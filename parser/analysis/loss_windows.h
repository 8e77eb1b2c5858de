/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The times at which events were lost. After an overflow, a ring's next record is a LOST record
 * with the number. The loss lies between that ring's previous record and the LOST record. Such
 * windows are collected for all CPUs together; windows that overlap or touch are joined.
 *
 * Memory is bounded: if there are too many windows, the closest ones are joined. So a window may
 * include time without losses, but every loss with a known time lies inside a window.
 */
#ifndef LEAKTOOLS_PARSER_LOSS_WINDOWS_H
#define LEAKTOOLS_PARSER_LOSS_WINDOWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LOSS_MAX_WINDOWS 4096
#define LOSS_MAX_CPUS	 8192 /* the kernel's maximum on x86 */

/*
 * leakrec has two rings per CPU: one for probes' samples, one for everything else. For a recorder
 * with one ring, this distinction makes windows longer, never shorter.
 */
enum loss_ring { LOSS_RING_PROBES, LOSS_RING_OTHERS, LOSS_NR_RINGS };

struct loss_window {
	uint64_t start_ns; /* exclusive; 0: the start of the recording */
	uint64_t end_ns;   /* inclusive */
	uint64_t lost;	   /* events; LOSS_UNKNOWN or more: the number is not known */
};

/* More than any recording has. Sums of LOSS_MAX_WINDOWS of them do not overflow. */
#define LOSS_UNKNOWN (UINT64_C(1) << 40)

struct loss_windows;

/* NULL: out of memory. */
struct loss_windows *loss_windows_create(void);
void loss_windows_destroy(struct loss_windows *windows);

/* Notes a record of @ring of @cpu, in time order. A record with a @time_ns of 0 is ignored. */
void loss_windows_note(struct loss_windows *windows, enum loss_ring ring, uint32_t cpu,
		       uint64_t time_ns);

/*
 * Adds a LOST record of @ring of @cpu (UINT32_MAX: not known), and notes it. Adds nothing if @lost
 * is 0.
 */
void loss_windows_add(struct loss_windows *windows, enum loss_ring ring, uint32_t cpu,
		      uint64_t time_ns, uint64_t lost);

/* Adds a window in which any number of events may be missing, on all rings. */
void loss_windows_add_gap(struct loss_windows *windows, uint64_t start_ns, uint64_t end_ns);

/* True if a window has a time after @from_ns and before @to_ns. */
bool loss_windows_overlap(const struct loss_windows *windows, uint64_t from_ns, uint64_t to_ns);

/* The windows in time order, *@ret_nr of them; valid until the next one is added. */
const struct loss_window *loss_windows_list(const struct loss_windows *windows, size_t *ret_nr);

#endif
