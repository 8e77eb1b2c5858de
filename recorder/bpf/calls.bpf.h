/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Calls that are probed in place of the functions that they call (probes/calls/). A site is the
 * call instruction, and its exit is the instruction behind it. Samples are those that a probe of
 * the function would have written.
 */
#ifndef LEAKTOOLS_RECORDER_CALLS_BPF_H
#define LEAKTOOLS_RECORDER_CALLS_BPF_H

#include "recorder/bpf/filter.bpf.h"

/* The address that the call at a site returns to. */
ALWAYS_INLINE unsigned long long caller_at(struct pt_regs *regs, const struct bpf_site *site)
{
	return at_calls ? PT_REGS_IP(regs) + site->call_bytes : caller_at_entry(regs);
}

/*
 * Where a call goes. That of a library's function goes through a pointer, which the dynamic linker
 * may fill at the first call; until then, and while its page is not in memory, it is the PLT stub
 * that stands for the function.
 */
static __attribute__((noinline)) unsigned long long target_of_call(struct pt_regs *regs,
								   unsigned int index)
{
	const struct bpf_site *site = &sites[index & (BPF_MAX_SITES - 1)];
	unsigned long long at = PT_REGS_IP(regs), function;

	if (site->pointer_distance && !bpf_probe_read_user(&function, sizeof(function),
							   (void *)(at + site->pointer_distance)))
		return function;
	return at + site->target_distance;
}

/* The function at a site. */
ALWAYS_INLINE unsigned long long function_at(struct pt_regs *regs, unsigned int index)
{
	return at_calls ? target_of_call(regs, index) : PT_REGS_IP(regs);
}

#endif
