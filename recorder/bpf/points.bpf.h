/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Points inside of an allocation function where one hit replaces those of entry and return
 * (probes/sites/single_trap_points.h). The sample is the one that the return would have written,
 * with the caller's registers.
 */
#ifndef LEAKTOOLS_RECORDER_POINTS_BPF_H
#define LEAKTOOLS_RECORDER_POINTS_BPF_H

#include "recorder/bpf/filter.bpf.h"

/* The address of the return address of the function that contains @site. */
ALWAYS_INLINE unsigned long long frame_at(struct pt_regs *regs, const struct bpf_site *site)
{
	return PT_REGS_SP(regs) + site->frame_words * 8ULL;
}

/* Notes the requested size, where its register is overwritten before the block is known. */
ALWAYS_INLINE void note_asked(struct pt_regs *regs, const struct bpf_site *site)
{
	struct task_state *state = state_of_task();

	if (state) {
		state->frame = frame_at(regs, site);
		state->bytes = numbered_register(regs, site->size_register - 1);
	} else if (records_calls()) {
		count_lost();
	}
}

/* The registers of the sample, as after the return. Returns false if they cannot be read. */
static __attribute__((noinline)) bool registers_at_return(struct pt_regs *regs, unsigned int index,
							  struct kept_registers *ret)
{
	const struct bpf_site *site = &sites[index & (BPF_MAX_SITES - 1)];
	unsigned int words = site->frame_words & (BPF_FRAME_WORDS - 1);
	unsigned long long frame[BPF_FRAME_WORDS] = {0}, at = frame_at(regs, site);

	if (bpf_probe_read_user(frame, words * 8 + 8, (void *)PT_REGS_SP(regs)))
		return false;
	restore_registers(ret, regs, site->saved, frame);
	set_return(ret, true_return(frame[words], at), at + 8);
	return true;
}

/* The requested size. Returns false if it is not known. */
ALWAYS_INLINE bool find_bytes(struct pt_regs *regs, const struct bpf_site *site,
			      unsigned long long *ret)
{
	struct task_state *state;

	if (site->size_register) {
		*ret = numbered_register(regs, site->size_register - 1);
		return true;
	}
	state = state_of_task();
	/* The recording, or the window, began during the call, so the size was not noted. */
	if (state && !state->frame)
		return false;
	/* A signal handler has called the function during the call. */
	if (!state || state->frame != frame_at(regs, site)) {
		count_lost();
		return false;
	}
	*ret = state->bytes;
	return true;
}

static __attribute__((noinline)) int record_point(struct pt_regs *regs, unsigned int index)
{
	const struct bpf_site *site = &sites[index & (BPF_MAX_SITES - 1)];
	unsigned long long block = 0, bytes;
	struct sample sample;

	if (!find_bytes(regs, site, &bytes) ||
	    (has_filter && (bytes < filter_min || bytes > filter_max)))
		return 0;
	if (site->block_register)
		block = numbered_register(regs, site->block_register - 1);
	sample = (struct sample){};
	if (!registers_at_return(regs, index, &sample.regs) || !note_returned(site, block, 0)) {
		count_lost();
		return 0;
	}
	sample.fields[0] = PT_REGS_IP(regs) - site->distance;
	sample.fields[1] = KEPT_IP(&sample.regs);
	sample.fields[2] = bytes;
	sample.fields[3] = block;
	record(&sample, &site->events[BPF_EVENT_CALL], 4);
	return 0;
}

#endif
