/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The carriers of a process, the threads that have its events (fork_follow.h), if it has no links,
 * or has many threads but not its first one any more. The kernel knows by their memory where the
 * breakpoints belong, and an ended thread has none. So a process with several threads has two
 * carriers: when one ends, the other one is enough until the recorder has found another thread. A
 * thread is noted before its events are opened, so that its end is noticed, but it counts only when
 * they are open (TARGET_CARRIER_OPENING).
 *
 * The first thread of most processes lasts as long as they do, and is their first carrier. A
 * process with such a carrier that creates many threads, which soon end, is stopped for a second
 * carrier only so many times in half a minute. A stop lasts until the recorder gets a CPU.
 */
#ifndef LEAKTOOLS_RECORDER_CARRIERS_BPF_H
#define LEAKTOOLS_RECORDER_CARRIERS_BPF_H

#include "recorder/bpf/targets.bpf.h"

#define MAX_CARRIER_STOPS 32
#define CARRIER_STOPS_NS  30000000000ULL

ALWAYS_INLINE bool is_open(unsigned int carrier)
{
	return carrier && !(carrier & TARGET_CARRIER_OPENING);
}

ALWAYS_INLINE bool has_carrier(const struct target *target)
{
	return is_open(target->carriers[0]) || is_open(target->carriers[1]);
}

ALWAYS_INLINE bool is_carrier(const struct target *target, unsigned int tid)
{
	return target->carriers[0] == tid || target->carriers[1] == tid;
}

/* Returns true if @tid was a carrier. */
ALWAYS_INLINE bool remove_carrier(struct target *target, unsigned int tid)
{
	bool ret = false;

	for (int i = 0; i < TARGET_MAX_CARRIERS; i++) {
		unsigned int opening = tid | TARGET_CARRIER_OPENING;

		ret |= __sync_val_compare_and_swap(&target->carriers[i], opening, 0) == opening;
		ret |= __sync_val_compare_and_swap(&target->carriers[i], tid, 0) == tid;
	}
	return ret;
}

/* After an exec, @tid is the only one that there may be. */
ALWAYS_INLINE void keep_carrier(struct target *target, unsigned int tid)
{
	for (int i = 0; i < TARGET_MAX_CARRIERS; i++)
		if ((target->carriers[i] & ~TARGET_CARRIER_OPENING) != tid)
			target->carriers[i] = 0;
}

/* True if the process, whose first thread lasts, has been stopped often enough lately. */
ALWAYS_INLINE bool has_enough_stops(struct target *target)
{
	unsigned long long now = bpf_ktime_get_ns();

	if (now - target->carrier_stops_ns > CARRIER_STOPS_NS) {
		target->carrier_stops_ns = now;
		target->carrier_stops = 0;
	}
	return is_carrier(target, target->tgid) && target->carrier_stops++ >= MAX_CARRIER_STOPS;
}

/*
 * When the thread @tid is created: has the recorder find a second carrier, and stops the process
 * until then.
 */
ALWAYS_INLINE void want_carriers(struct target *target, unsigned int tid)
{
	/* The backups of after_fork() must not count the stop again. */
	if (shared.closed || target->newest_thread == tid ||
	    (is_open(target->carriers[0]) && is_open(target->carriers[1])))
		return;
	target->newest_thread = tid;
	target->forks = TARGET_FORKS_WANTED;
	if (recording && !has_enough_stops(target) && may_hold_fork(target))
		hold_for_set_up(target);
	shared.any_stopped = 1;
	wake_recorder();
}

/* True if @target, a new process, has to be stopped before it runs. */
ALWAYS_INLINE bool must_be_held(struct target *target)
{
	if (!target || !target->set_up)
		return false;
	if (target_waits_for_events(target) && !shared.closed) {
		if (can_end_stops())
			return true;
		shared.missed = 1;
	}
	target->set_up = 0;
	return false;
}

#endif
