/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Unwinds the stack dumps of samples while they are recorded, and writes them as ordinary
 * callchains: PERF_CONTEXT_USER, the instruction, return addresses. A chain that does not reach the
 * outermost frame ends in an address of 0 or 1 (STACK_TRUNCATED, STACK_INCOMPLETE;
 * docs/perf-data.md).
 *
 * A stack is unwound against the mappings of its own instant. So the records of mappings, forks and
 * execs wait here until all samples that are older than they are have been written; who drains the
 * rings sees to that (ring_reader.c).
 */
#ifndef LEAKTOOLS_RECORDER_LIVE_UNWINDER_H
#define LEAKTOOLS_RECORDER_LIVE_UNWINDER_H

#include "recorder/output/perf_writer.h"
#include "recorder/events/record_events.h"
#include "unwind/stacks/stack_store.h"

struct live_unwinder;

/* Returns 0 or a negative errno, reported. */
int live_unwinder_create(struct live_unwinder **ret);
void live_unwinder_destroy(struct live_unwinder *unwinder);

/* Tells which events' samples hold dumps, before the first sample. Returns 0 or -ENOMEM, reported.
 */
int live_unwinder_set_events(struct live_unwinder *unwinder, const struct record_events *events);

/*
 * Programs write the samples, whose dumps have RECORD_CALL_REGS_MASK's registers. They are told, by
 * the table of stack_bases.h, how much of the stacks is needed of those dumps that they write next,
 * of at most @max_bytes.
 */
void live_unwinder_set_tops(struct live_unwinder *unwinder, unsigned long long *stack_bases,
			    uint32_t max_bytes);

/*
 * Takes note of a record that tells of a mapping, a fork or an exec; others are ignored. One
 * without a time holds at once. Returns 0 or -ENOMEM.
 */
int live_unwinder_note(struct live_unwinder *unwinder, const struct perf_event_header *record);

/* The time of the oldest record that waits, on the samples' clock; UINT64_MAX: there is none. */
uint64_t live_unwinder_next_ns(struct live_unwinder *unwinder);

/* Lets it take effect. Returns 0 or -ENOMEM. */
int live_unwinder_apply_next(struct live_unwinder *unwinder);

/*
 * Writes @record, of at most UINT16_MAX bytes in one piece, 8-byte aligned: a sample with a dump as
 * one with a callchain, any other as it is. Returns 0, the writer's error, or -ENOMEM.
 */
int live_unwinder_write(struct live_unwinder *unwinder, const struct perf_event_header *record,
			struct perf_writer *writer);

/* What became of the stacks. Valid as long as the unwinder. */
const struct stack_unwind_stats *live_unwinder_stats(const struct live_unwinder *unwinder);

/* The samples that were not written because they were not what their event's attribute promises. */
uint64_t live_unwinder_nr_dropped(const struct live_unwinder *unwinder);

#endif
