/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Unwinds the stack dumps of samples while recording, and writes them as ordinary callchains:
 * PERF_CONTEXT_USER, the instruction, return addresses. A chain that does not reach the outermost
 * frame ends with an address of 0 to 2 (STACK_TRUNCATED, STACK_INCOMPLETE, STACK_ELSEWHERE;
 * docs/perf-data.md).
 *
 * A stack must be unwound against the mappings of its time. So records of mappings, forks and execs
 * wait here until all older samples have been written; ring_reader.c decides when that is.
 */
#ifndef LEAKTOOLS_RECORDER_LIVE_UNWINDER_H
#define LEAKTOOLS_RECORDER_LIVE_UNWINDER_H

#include "recorder/output/perf_writer.h"
#include "recorder/events/record_events.h"
#include "unwind/stacks/stack_store.h"

struct live_unwinder;

/* Returns 0 or a negative errno, reported. */
int live_unwinder_create(struct live_unwinder **ret);
/* For tests: leakrec leaves that to its end (session.c). */
void live_unwinder_destroy(struct live_unwinder *unwinder);

/* Sets which events have dumps. Call it before the first sample. 0 or -ENOMEM, reported. */
int live_unwinder_set_events(struct live_unwinder *unwinder, const struct record_events *events);

/*
 * BPF programs write the samples: dumps have the registers of RECORD_CALL_REGS_MASK. The unwinder
 * tells the programs, by the table of stack_bases.h, how much of each stack to dump, at most
 * @max_bytes.
 */
void live_unwinder_set_stack_bases(struct live_unwinder *unwinder, unsigned long long *stack_bases,
				   uint32_t max_bytes);

/*
 * Keeps a record of a mapping, a fork or an exec until its time; ignores others. A record without a
 * time takes effect at once. Returns 0 or -ENOMEM.
 */
int live_unwinder_note(struct live_unwinder *unwinder, const struct perf_event_header *record);

/* The time of the oldest waiting record, on the samples' clock; UINT64_MAX: none waits. */
uint64_t live_unwinder_next_ns(struct live_unwinder *unwinder);

/* Applies that record. Returns 0 or -ENOMEM. */
int live_unwinder_apply_next(struct live_unwinder *unwinder);

/*
 * Writes @record, of at most UINT16_MAX bytes, contiguous and 8-byte aligned. A sample with a dump
 * becomes one with a callchain. *@ret is what was written, valid until the next call or as long as
 * @record; NULL: it was dropped. Returns 0, the writer's error, or -ENOMEM.
 */
int live_unwinder_write(struct live_unwinder *unwinder, const struct perf_event_header *record,
			struct perf_writer *writer, const struct perf_event_header **ret);

/* Counts of stacks and failures. Valid as long as the unwinder. */
const struct stack_unwind_stats *live_unwinder_stats(const struct live_unwinder *unwinder);

/* How many samples were dropped because they do not match their event's attribute. */
uint64_t live_unwinder_nr_dropped(const struct live_unwinder *unwinder);

#endif
