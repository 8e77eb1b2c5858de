/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Records what functions of the user's choice give and take (common/schema/resource_schema.h).
 * Samples have their fields at fixed places, of which a recording describes those that mean
 * something: at the entry the handle, the size and the caller, at the return, which exits.bpf.h
 * sees, the value and what was stored.
 */
#ifndef LEAKTOOLS_RECORDER_RESOURCES_BPF_H
#define LEAKTOOLS_RECORDER_RESOURCES_BPF_H

#include "recorder/bpf/exits.bpf.h"

/* A register, or what the user's memory holds where it points to. */
ALWAYS_INLINE unsigned long long read_place(struct pt_regs *regs, unsigned int place)
{
	unsigned long long value = 0;

	if (!place)
		return 0;
	bpf_probe_read_kernel(&value, sizeof(value), (char *)regs + (place & 0xff));
	if (place & BPF_READ_POINTED && bpf_probe_read_user(&value, sizeof(value), (void *)value))
		value = 0;
	return value;
}

static __attribute__((noinline)) int record_resource_entry(struct pt_regs *regs, unsigned int index)
{
	const struct bpf_site *site = &sites[index & (BPF_MAX_SITES - 1)];
	const struct bpf_event *event = &site->events[BPF_EVENT_ENTRY];
	unsigned long long fields[MAX_FIELDS] = {PT_REGS_IP(regs)};

	fields[1] = read_place(regs, site->reads[0]);
	fields[2] = read_place(regs, site->reads[1]);
	fields[3] = site->has_caller ? caller_at_entry(regs) : 0;
	if (site->has_exits && !note_call(regs, index, site->stores ? fields[1] : 0, true))
		return 0;
	record(regs, event, fields, 4, fields[3]);
	return 0;
}

SEC("kprobe")
int linked_resource_entry(struct pt_regs *regs)
{
	KEEP_TASK_STACK(regs, at_links);
	if (recording)
		record_resource_entry(regs, bpf_get_attach_cookie(regs) & (BPF_MAX_SITES - 1));
	return 0;
}

SEC("kprobe")
int followed_resource_entry(struct pt_regs *regs)
{
	KEEP_TASK_STACK(regs, at_events);
	if (is_followed())
		record_resource_entry(regs, bpf_get_attach_cookie(regs) & (BPF_MAX_SITES - 1));
	return 0;
}

#endif
