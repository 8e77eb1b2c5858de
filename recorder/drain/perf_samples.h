/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Samples of perf events, as the kernel writes them. An event must not fetch the return address,
 * for which the kernel could wait (probe_set_make_own()). The field has the address of the return
 * address instead, and the sample has the top of the stack, which the kernel copies without waiting
 * (perf_output_sample_ustack(), kernel/events/core.c: __output_copy_user() disables page faults).
 * In perf.data, the field has the return address: 0 if its page was not in memory.
 */
#ifndef LEAKTOOLS_RECORDER_PERF_SAMPLES_H
#define LEAKTOOLS_RECORDER_PERF_SAMPLES_H

#include "recorder/bpf/samples_shared.h"
#include "recorder/events/record_group.h"

/* The beginning of RAW in a sample of a tracepoint. NULL: @record is none. */
const struct raw_head *perf_sample_raw(const struct perf_event_header *record);

/* Sets the return address, and drops the top of the stack if it is there only for that. */
void perf_sample_set_caller(struct perf_event_header *sample, const struct record_event *event);

#endif
