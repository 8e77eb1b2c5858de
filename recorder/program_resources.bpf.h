/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Records what functions of the user's choice give and take (common/resource_schema.h). Samples
 * have their fields at fixed places, of which a recording describes those that mean something: at
 * the entry the handle, the size and the caller, at the return the value and what was stored.
 */
#ifndef LEAKTOOLS_RECORDER_PROGRAM_RESOURCES_BPF_H
#define LEAKTOOLS_RECORDER_PROGRAM_RESOURCES_BPF_H

#include "program_samples.bpf.h"

/* Where calls that are under way are to store their handles. */
struct store_key {
	unsigned long long pid_tgid, site;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct store_key);
	__type(value, unsigned long long);
} pending_stores SEC(".maps");

/* A register, or what the user's memory holds where it points to. */
ALWAYS_INLINE unsigned long long read_place(struct pt_regs *regs, unsigned int place)
{
	unsigned long long value = 0;

	if (!place)
		return 0;
	bpf_probe_read_kernel(&value, sizeof(value), (char *)regs + (place & 0xff));
	if (place & PROGRAM_READ_POINTED &&
	    bpf_probe_read_user(&value, sizeof(value), (void *)value))
		value = 0;
	return value;
}

static __attribute__((noinline)) int record_resource_entry(struct pt_regs *regs, unsigned int index)
{
	const struct program_site *site = &sites[index & (PROGRAM_MAX_SITES - 1)];
	const struct program_event *event = &site->events[PROGRAM_ENTRY];
	unsigned long long fields[MAX_FIELDS] = {PT_REGS_IP(regs)};
	struct store_key key = {bpf_get_current_pid_tgid(), index};

	fields[1] = read_place(regs, site->reads[0]);
	fields[2] = read_place(regs, site->reads[1]);
	fields[3] = site->has_caller ? caller_at_entry(regs) : 0;
	if (site->stores)
		bpf_map_update_elem(&pending_stores, &key, &fields[1], BPF_ANY);
	record(regs, event, fields, 4, fields[3]);
	return 0;
}

static __attribute__((noinline)) int record_resource_return(struct pt_regs *regs,
							    unsigned int index)
{
	const struct program_site *site = &sites[index & (PROGRAM_MAX_SITES - 1)];
	const struct program_event *event = &site->events[PROGRAM_RETURN];
	unsigned long long fields[MAX_FIELDS], *where;
	struct store_key key = {bpf_get_current_pid_tgid(), index};

	fields[0] = bpf_get_func_ip(regs);
	fields[1] = PT_REGS_IP(regs);
	fields[2] = PT_REGS_RC(regs);
	fields[3] = 0;
	where = site->stores ? bpf_map_lookup_elem(&pending_stores, &key) : 0;
	if (where && bpf_probe_read_user(&fields[3], sizeof(fields[3]), (void *)*where))
		fields[3] = 0;
	record(regs, event, fields, 4, 0);
	return 0;
}

SEC("kprobe")
int linked_resource_call(struct pt_regs *regs)
{
	unsigned int index = bpf_get_attach_cookie(regs) & (PROGRAM_MAX_SITES - 1);
	__u64 *cookie = bpf_session_cookie();

	KEEP_TASK_STACK(regs, at_sessions);
	if (!recording)
		return 1;
	if (*cookie)
		return record_resource_return(regs, index);
	*cookie = 1;
	return record_resource_entry(regs, index);
}

SEC("kprobe")
int linked_resource_entry(struct pt_regs *regs)
{
	KEEP_TASK_STACK(regs, at_links);
	if (recording)
		record_resource_entry(regs, bpf_get_attach_cookie(regs) & (PROGRAM_MAX_SITES - 1));
	return 0;
}

SEC("kprobe")
int followed_resource_entry(struct pt_regs *regs)
{
	KEEP_TASK_STACK(regs, at_events);
	if (is_followed())
		record_resource_entry(regs, bpf_get_attach_cookie(regs) & (PROGRAM_MAX_SITES - 1));
	return 0;
}

SEC("kprobe")
int followed_resource_return(struct pt_regs *regs)
{
	KEEP_TASK_STACK(regs, at_events);
	if (is_followed())
		record_resource_return(regs, bpf_get_attach_cookie(regs) & (PROGRAM_MAX_SITES - 1));
	return 0;
}

#endif
