/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The table of processes in struct target_table: found, added and removed in the same way by the
 * BPF programs and by the recorder, at the same time. An entry is where the search for its process
 * meets it first. Two entries of one process may come of two threads that add it at once; both
 * are removed with it.
 *
 * A process is added by whoever names it, or when an entry's process forks it: never for its
 * parent's sake, which may be init, a subreaper or a debugger by then. It is removed when its last
 * thread exits, before its id can be another process's (target_lifetime.bpf.h).
 */
#ifndef LEAKTOOLS_RECORDER_TARGET_TABLE_H
#define LEAKTOOLS_RECORDER_TARGET_TABLE_H

#include "recorder/target_table/target_table_shared.h"

#define TARGET_INLINE static inline __attribute__((always_inline, unused))

/* The first entry to look at for a process; the search goes on linearly. */
TARGET_INLINE unsigned int target_slot(unsigned int tgid)
{
	return (tgid * 2654435761U >> 16) & (TARGET_TABLE_SIZE - 1);
}

/* True if @tgid, of an entry, is a process. */
TARGET_INLINE bool target_is_process(unsigned long long tgid)
{
	return tgid > TARGET_INIT && tgid < TARGET_CLAIMED;
}

TARGET_INLINE struct target *target_table_find(struct target_table *shared, unsigned int tgid)
{
	if (tgid <= TARGET_INIT)
		return 0;
	for (int i = 0; i < TARGET_MAX_SEARCH; i++) {
		unsigned int slot = (target_slot(tgid) + i) & (TARGET_TABLE_SIZE - 1);

		if (shared->targets[slot].tgid == tgid)
			return &shared->targets[slot];
		if (shared->targets[slot].tgid == 0)
			break;
	}
	return 0;
}

TARGET_INLINE void target_clear(struct target *target)
{
	target->stopped = target->stopped_ns = 0;
	target->linked = target->forks = target->job_stopped = target->continuing = 0;
	target->role = target->has_mapped = target->looked_at = target->set_up = 0;
	target->debugged = 0;
	target->mapped_device = target->mapped_inode = 0;
}

/* The entry of @tgid, which may be new; NULL: there is no room for it. */
TARGET_INLINE struct target *target_table_add(struct target_table *shared, unsigned int tgid)
{
	struct target *target = target_table_find(shared, tgid);

	if (target || tgid <= TARGET_INIT)
		return target;
	for (int i = 0; i < TARGET_MAX_SEARCH; i++) {
		unsigned long long old;

		target = &shared->targets[(target_slot(tgid) + i) & (TARGET_TABLE_SIZE - 1)];
		old = target->tgid;
		if ((old && old != TARGET_REMOVED) ||
		    __sync_val_compare_and_swap(&target->tgid, old, TARGET_CLAIMED) != old)
			continue;
		/* What came too late for the process that was here before is not this one's. */
		target_clear(target);
		__sync_lock_test_and_set(&target->tgid, (unsigned long long)tgid);
		return target;
	}
	return 0;
}

TARGET_INLINE void target_table_remove(struct target_table *shared, unsigned int tgid)
{
	if (tgid <= TARGET_INIT)
		return;
	for (int i = 0; i < TARGET_MAX_SEARCH; i++) {
		unsigned int slot = (target_slot(tgid) + i) & (TARGET_TABLE_SIZE - 1);
		struct target *target = &shared->targets[slot];

		if (target->tgid == 0)
			break;
		if (target->tgid != tgid)
			continue;
		target_clear(target);
		__sync_lock_test_and_set(&target->tgid, TARGET_REMOVED);
	}
}

#endif
