/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The system calls that the recording programs record (syscalls.bpf.h): what the programs are told
 * of common/schema/syscall_schema.h, and how the recording describes the events. Names and fields
 * are those of the kernel's tracepoints.
 */
#ifndef LEAKTOOLS_RECORDER_BPF_SYSCALLS_H
#define LEAKTOOLS_RECORDER_BPF_SYSCALLS_H

#include "recorder/bpf/bpf_recorder_shared.h"
#include "recorder/events/record_events.h"

#include <stdbool.h>

/*
 * Fills in the entries of @syscalls, by number, that config->syscalls selects, and adds their
 * events to @events. Returns 0 or -ENOMEM.
 */
int bpf_syscalls_describe(struct bpf_syscall *syscalls, const struct record_config *config,
			  struct record_events *events);

/*
 * Sets the entries of @ret, by number, of the calls that read and write, receive and send: how
 * often a program does that shows how much work it does. Not what waits or synchronizes: a program
 * that is slowed down does that as often, or more often.
 */
void bpf_syscalls_mark_transfers(bool ret[static BPF_MAX_SYSCALLS]);

#endif
