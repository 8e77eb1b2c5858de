/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * System calls as the recording programs write them (syscalls.bpf.h): what the programs are
 * told of common/schema/syscall_schema.h, and how the recording describes the events, which have
 * the names and the fields of the kernel's tracepoints.
 */
#ifndef LEAKTOOLS_RECORDER_BPF_SYSCALLS_H
#define LEAKTOOLS_RECORDER_BPF_SYSCALLS_H

#include "recorder/bpf/bpf_recorder_shared.h"
#include "recorder/events/record_events.h"

/*
 * Fills in @syscalls, by number, with those of config->syscalls, and adds their events to @events.
 * Returns 0 or -ENOMEM.
 */
int bpf_syscalls_describe(struct bpf_syscall *syscalls, const struct record_config *config,
			  struct record_events *events);

#endif
