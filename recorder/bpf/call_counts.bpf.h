/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Counts the calls of functions that few calls reach, also between windows
 * (recorder/windows/call_counts.h).
 */
#ifndef LEAKTOOLS_RECORDER_CALL_COUNTS_BPF_H
#define LEAKTOOLS_RECORDER_CALL_COUNTS_BPF_H

#include "recorder/bpf/targets.bpf.h"
#include "recorder/bpf/windows.bpf.h"

struct bpf_counted_calls counted_calls[BPF_MAX_COUNTED];

SEC("kprobe")
int count_call(struct pt_regs *regs)
{
	unsigned long long cookie = bpf_get_attach_cookie(regs);
	struct bpf_counted_calls *calls = &counted_calls[cookie & (BPF_MAX_COUNTED - 1)];
	const struct target *target = current_target();

	count_hit(cookie & BPF_CALL_STEPPED);
	/* A window may have a part of the processes only. */
	if (window_state() == BPF_WINDOW_OPEN && target && target->linked)
		__sync_fetch_and_add(&calls->observed, 1);
	/* A function may become hot. Then the recorder ends its count. */
	if (__sync_fetch_and_add(&calls->all, 1) % BPF_CALLS_STEP == BPF_CALLS_STEP - 1)
		wake_recorder();
	return 0;
}

#endif
