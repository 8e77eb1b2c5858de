/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * When events were lost. A ring that overflows says so with its next record: a LOST record that
 * gives the number. What was lost lies between that ring's record before it and the LOST record.
 * These windows are collected for all CPUs together; those that overlap or touch are one.
 *
 * Memory is bounded: of too many windows those closest to each other are joined. So a window may
 * hold time without losses, but no loss that has a time lies outside of all windows.
 */
#ifndef LEAKTOOLS_PARSER_LOSS_WINDOWS_H
#define LEAKTOOLS_PARSER_LOSS_WINDOWS_H

#include <stddef.h>
#include <stdint.h>

#define LOSS_MAX_WINDOWS 4096
#define LOSS_MAX_CPUS	 8192 /* as many as the kernel can be built for on x86 */

/*
 * leakrec has two rings on each CPU: one for the probes' samples, one for all else. Where a
 * recorder has one, to tell its records apart like this makes windows longer, never shorter.
 */
enum loss_ring { LOSS_RING_PROBES, LOSS_RING_OTHERS, LOSS_NR_RINGS };

struct loss_window {
	uint64_t start_ns; /* excluded; 0: the beginning of the recording */
	uint64_t end_ns;   /* included */
	uint64_t lost;	   /* events */
};

struct loss_windows;

/* NULL: out of memory. */
struct loss_windows *loss_windows_create(void);
void loss_windows_destroy(struct loss_windows *windows);

/* A record of that ring of @cpu, in time order. A @time_ns of 0 is none. */
void loss_windows_note(struct loss_windows *windows, enum loss_ring ring, uint32_t cpu,
		       uint64_t time_ns);

/*
 * A LOST record of that ring of @cpu, UINT32_MAX if that is not known; it counts as noted. Nothing
 * is added where @lost is 0.
 */
void loss_windows_add(struct loss_windows *windows, enum loss_ring ring, uint32_t cpu,
		      uint64_t time_ns, uint64_t lost);

/* The windows in time order, *@ret_nr of them; valid until the next is added. */
const struct loss_window *loss_windows_list(const struct loss_windows *windows, size_t *ret_nr);

#endif
