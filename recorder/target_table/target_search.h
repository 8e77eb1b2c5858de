/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finds, adds and removes entries of the target table. BPF programs and user space run this code on
 * the same table at the same time. A search starts at the slot of the process id and goes on
 * linearly. Two threads that add their process at once may create two entries for it; removal
 * removes both.
 *
 * A process is added when it is named, or when a process of the table forks it. Its parent does not
 * matter later: that may be init, a subreaper or a debugger by then. It is removed when its last
 * thread exits, before another process can have its id (target_lifetime.bpf.h).
 */
#ifndef LEAKTOOLS_RECORDER_TARGET_SEARCH_H
#define LEAKTOOLS_RECORDER_TARGET_SEARCH_H

#include "recorder/target_table/target_table_shared.h"

#define TARGET_INLINE static inline __attribute__((always_inline, unused))

/*
 * The slot where the search for a process starts. One multiplication is not enough: ids with the
 * same distance would crowd around a few slots.
 */
TARGET_INLINE unsigned int target_slot(unsigned int tgid)
{
	tgid *= 2654435761U;
	tgid = (tgid ^ tgid >> 15) * 0x7feb352dU;
	return (tgid >> 16) & (TARGET_TABLE_SIZE - 1);
}

/* True if @tgid, from an entry, is a process id. */
TARGET_INLINE bool target_is_process(unsigned long long tgid)
{
	return tgid > TARGET_INIT && tgid < TARGET_CLAIMED;
}

TARGET_INLINE struct target *target_table_find(struct target_table *table, unsigned int tgid)
{
	if (tgid <= TARGET_INIT)
		return 0;
	for (int i = 0; i < TARGET_MAX_SEARCH; i++) {
		unsigned int slot = (target_slot(tgid) + i) & (TARGET_TABLE_SIZE - 1);

		if (table->targets[slot].tgid == tgid)
			return &table->targets[slot];
		if (table->targets[slot].tgid == 0)
			break;
	}
	return 0;
}

TARGET_INLINE void target_clear(struct target *target)
{
	target->stopped = target->stopped_ns = 0;
	target->linked = target->forks = target->job_stopped = target->continuing = 0;
	target->kept = TARGET_NOT_KEPT;
	target->tty_stops = 0;
	target->role = target->has_mapped = target->looked_at = target->set_up = 0;
	target->debugged = target->fork_noted = 0;
	target->exec_id = 0;
	target->start_time_ticks = 0;
	for (int i = 0; i < TARGET_MAX_CARRIERS; i++)
		target->carriers[i] = 0;
	target->carrier_stops = target->newest_thread = 0;
	target->carrier_stops_ns = 0;
	target->mapped_device = target->mapped_inode = 0;
	target->mapped_size_bytes = target->mapped_changed_ns = 0;
	target->steps = target->steps_begin = target->steps_mid = 0;
	target->paused_ns = target->strained_windows = 0;
}

/* Returns the entry of @tgid, adding it if needed, or NULL if there is no room. */
TARGET_INLINE struct target *target_table_add(struct target_table *table, unsigned int tgid)
{
	struct target *target = target_table_find(table, tgid);

	if (target || tgid <= TARGET_INIT)
		return target;
	for (int i = 0; i < TARGET_MAX_SEARCH; i++) {
		unsigned int slot = (target_slot(tgid) + i) & (TARGET_TABLE_SIZE - 1);
		unsigned long long old;

		target = &table->targets[slot];
		old = target->tgid;
		if ((old && old != TARGET_REMOVED) ||
		    __sync_val_compare_and_swap(&target->tgid, old, TARGET_CLAIMED) != old)
			continue;
		/* A program may have set marks after the previous process was removed. */
		target_clear(target);
		table->groups[slot / TARGET_GROUP_SIZE] = 1;
		__sync_lock_test_and_set(&target->tgid, (unsigned long long)tgid);
		return target;
	}
	return 0;
}

TARGET_INLINE void target_table_remove(struct target_table *table, unsigned int tgid)
{
	if (tgid <= TARGET_INIT)
		return;
	for (int i = 0; i < TARGET_MAX_SEARCH; i++) {
		unsigned int slot = (target_slot(tgid) + i) & (TARGET_TABLE_SIZE - 1);
		struct target *target = &table->targets[slot];

		if (target->tgid == 0)
			break;
		if (target->tgid != tgid)
			continue;
		__sync_fetch_and_add(&table->nr_gone, 1);
		target_clear(target);
		__sync_lock_test_and_set(&target->tgid, TARGET_REMOVED);
	}
}

#endif
