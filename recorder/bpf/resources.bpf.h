/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Records functions that the user has chosen, which give and take resources
 * (common/schema/resource_schema.h). The fields of samples have fixed offsets, and the recording
 * describes those in use: at the entry handle, size and caller; at the return (exits.bpf.h) the
 * value and what was stored.
 */
#ifndef LEAKTOOLS_RECORDER_RESOURCES_BPF_H
#define LEAKTOOLS_RECORDER_RESOURCES_BPF_H

#include "recorder/bpf/exits.bpf.h"

/* Reads a register, or the user's memory that it points to; @from is as in struct bpf_site. */
ALWAYS_INLINE unsigned long long read_value(struct pt_regs *regs, unsigned int from)
{
	unsigned long long value = 0;

	if (!from)
		return 0;
	bpf_probe_read_kernel(&value, sizeof(value), (char *)regs + (from & 0xff));
	if (from & BPF_READ_POINTED && bpf_probe_read_user(&value, sizeof(value), (void *)value))
		value = 0;
	return value;
}

static __attribute__((noinline)) int record_resource_entry(struct pt_regs *regs, unsigned int index)
{
	const struct bpf_site *site = &sites[index & (BPF_MAX_SITES - 1)];
	const struct bpf_event *event = &site->events[BPF_EVENT_ENTRY];
	struct sample sample;
	unsigned long long handle = read_value(regs, site->reads[0]);

	if (site->has_exits && !note_call(regs, index, site->stores ? handle : 0, true))
		return 0;
	sample.caller = site->has_caller ? caller_at_entry(regs) : 0;
	sample.fields[0] = PT_REGS_IP(regs);
	sample.fields[1] = handle;
	sample.fields[2] = read_value(regs, site->reads[1]);
	sample.fields[3] = sample.caller;
	record_here(&sample, event, 4, regs);
	return 0;
}

#endif
