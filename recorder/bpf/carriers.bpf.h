/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Without links: the carriers of a process, the threads that have its events (fork_follow.h). The
 * kernel knows by their memory where the breakpoints belong, and an ended thread has none. So a
 * process with several threads has two carriers: when one ends, the other one is enough until the
 * recorder has found another thread.
 */
#ifndef LEAKTOOLS_RECORDER_CARRIERS_BPF_H
#define LEAKTOOLS_RECORDER_CARRIERS_BPF_H

#include "recorder/bpf/targets.bpf.h"

ALWAYS_INLINE bool has_carrier(const struct target *target)
{
	return target->carriers[0] || target->carriers[1];
}

/* Returns true if @tid was a carrier. */
ALWAYS_INLINE bool remove_carrier(struct target *target, unsigned int tid)
{
	bool ret = false;

	for (int i = 0; i < TARGET_MAX_CARRIERS; i++)
		ret |= __sync_val_compare_and_swap(&target->carriers[i], tid, 0) == tid;
	return ret;
}

/* After an exec, @tid is the only one that there may be. */
ALWAYS_INLINE void keep_carrier(struct target *target, unsigned int tid)
{
	for (int i = 0; i < TARGET_MAX_CARRIERS; i++)
		if (target->carriers[i] != tid)
			target->carriers[i] = 0;
}

/* When a thread is created: stops the process until it has two carriers. */
ALWAYS_INLINE void want_carriers(struct target *target)
{
	if (shared.closed || (target->carriers[0] && target->carriers[1]))
		return;
	target->forks = TARGET_FORKS_WANTED;
	if (recording && may_hold_fork(target)) {
		target->set_up = 1;
		hold(target);
	}
	shared.any_stopped = 1;
	wake_recorder();
}

#endif
