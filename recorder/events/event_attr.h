/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The attributes of the recording's events, and which events have stacks. */
#ifndef LEAKTOOLS_RECORDER_EVENT_ATTR_H
#define LEAKTOOLS_RECORDER_EVENT_ATTR_H

#include "common/schema/syscall_schema.h"
#include "probes/plan/probe_set.h"
#include "recorder/events/record_config.h"

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>

/* The read_format that this kernel supports. */
uint64_t event_attr_read_format(void);

/*
 * True if the kernel swaps the perf contexts of a process and its forked child, so that inherited
 * events get lost (context_breakers.h).
 */
bool event_attr_contexts_swap(void);

/* Keeps the kernel from doing that to a context that has the event. @attr is an inherited event's.
 */
void event_attr_want_own_context(struct perf_event_attr *attr);

/* What all events have in common; @format is event_attr_read_format()'s. */
void event_attr_init(struct perf_event_attr *attr, uint64_t format);

/* Adds a stack to the event's samples, if stacks are recorded. */
void event_attr_want_stack(struct perf_event_attr *attr, const struct record_config *config);

/* Makes the kernel wake leakrec when so many pages of a ring are filled. */
void event_attr_want_wakeup_at(struct perf_event_attr *attr, uint32_t pages);

/* Makes the kernel wake leakrec before a ring is so full that backpressure stops the targets. */
void event_attr_want_wakeup(struct perf_event_attr *attr, const struct record_config *config);

/*
 * If @probe fetches the address of the return address, adds the word there to the samples
 * (perf_samples.h), and returns the field's offset in RAW. Else returns 0. Call it after
 * event_attr_want_stack().
 */
uint16_t event_attr_want_caller(struct perf_event_attr *attr, const struct probe *probe);

/*
 * Changes the attribute to describe the samples in perf.data: if leakrec unwinds while recording,
 * they have callchains instead of dumps. They do not have what event_attr_want_caller() added.
 */
void event_attr_describe_stack(struct perf_event_attr *attr, const struct record_config *config);

#define EVENT_ATTR_TEXT_STACK_BYTES 1024

/*
 * Adds the top of the stack to the samples of a mark, for its text, and wakes leakrec at each
 * (mark_texts.h). The attribute in perf.data has no stack. Call it after event_attr_want_wakeup().
 */
void event_attr_want_text(struct perf_event_attr *attr);
void event_attr_describe_text(struct perf_event_attr *attr);

/* True if samples of @probe, which is not a return probe, have a stack if stacks are recorded. */
bool event_attr_entry_has_stack(const struct probe *probe, const struct record_config *config);

/* True if samples of a system call's entry or return have a stack. */
bool event_attr_syscall_has_stack(const struct syscall_schema *schema, bool is_exit,
				  const struct record_config *config);

#endif
