/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Writes to a BPF ring (bpf_ring_shared.h). A program stays on one CPU, but a preemptible kernel
 * may run another task's program there between any two of its instructions. The later program gets
 * later room, and the recorder waits for the earlier one.
 */
#ifndef LEAKTOOLS_RECORDER_RING_BPF_H
#define LEAKTOOLS_RECORDER_RING_BPF_H

#include "recorder/bpf/registers.bpf.h"
#include "recorder/bpf/bpf_ring_shared.h"

#include <stdbool.h>
#include <linux/perf_event.h>

#define RESERVE_TRIES 4 /* a try fails only if another task reserves at that moment */

/* Options of the recording, fixed when the programs are loaded. */
const volatile unsigned int ring_mask = 0; /* the ring's bytes - 1 */
const volatile unsigned int wakeup_bytes = 0;
const volatile unsigned long long ring_secret = 0;

struct ring {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(unsigned int));
	__uint(value_size,
	       sizeof(struct bpf_ring_control)); /* the size is set when loading: bpf_programs.c */
};

/* A ring for each CPU. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, unsigned int);
	__array(values, struct ring);
} rings SEC(".maps");

/* Room in a ring. */
struct room {
	struct bpf_ring_control *ring;
	unsigned long long at;
	unsigned long long filled; /* bytes that the recorder has yet to read, at most, with this */
};

ALWAYS_INLINE struct bpf_ring_control *own_ring(unsigned int cpu)
{
	unsigned int first = 0;
	void *map = bpf_map_lookup_elem(&rings, &cpu);

	return map ? bpf_map_lookup_elem(map, &first) : 0;
}

/* Reserves room for a record of at most @size bytes. Returns its start, or NULL: there is none. */
ALWAYS_INLINE void *ring_reserve(struct bpf_ring_control *ring, unsigned int size, struct room *ret)
{
	const unsigned int bytes = size + BPF_RING_SEAL_BYTES;

	ret->ring = ring;
#pragma unroll
	for (int i = 0; i < RESERVE_TRIES; i++) {
		unsigned long long at = *(volatile unsigned long long *)&ring->head;

		ret->at = at;
		ret->filled = at + bytes - ring->seen_tail;
		/*
		 * The recorder's tail is in another cache line, which the recorder's CPU writes:
		 * look at it only if the ring may be so full that the recorder must be woken.
		 */
		if (ret->filled >= wakeup_bytes) {
			ring->seen_tail = *(volatile unsigned long long *)&ring->tail;
			ret->filled = at + bytes - ring->seen_tail;
			/* Negative: other programs and the recorder have gone past @at meanwhile.
			 */
			if ((long long)ret->filled < 0)
				continue;
			if (ret->filled > ring_mask)
				return 0;
		}
		if (__sync_val_compare_and_swap(&ring->head, at, at + bytes) == at) {
			__sync_fetch_and_add(&ring->records, 1);
			return (char *)ring + BPF_RING_DATA_OFFSET + (at & ring_mask) +
			       BPF_RING_SEAL_BYTES;
		}
	}
	return 0;
}

/* Completes the record at @at. */
ALWAYS_INLINE void ring_seal(struct bpf_ring_control *ring, unsigned long long at)
{
#if defined(__TARGET_ARCH_x86)
	volatile unsigned long long *seal =
		(void *)((char *)ring + BPF_RING_DATA_OFFSET + (at & ring_mask));

	/* x86 makes stores visible in order. */
	asm volatile("" ::: "memory");
	*seal = at ^ ring_secret;
#else
	/* The verifier wants to see that an atomic access is aligned. */
	const unsigned long long offset = at & (ring_mask & ~7ULL);

	__sync_lock_test_and_set(
		(unsigned long long *)((char *)ring + BPF_RING_DATA_OFFSET + offset),
		at ^ ring_secret);
#endif
}

/* Gives back the rest of a reservation of which only @used bytes, a multiple of 8, are needed. */
ALWAYS_INLINE void ring_shrink(const struct room *room, unsigned int size, unsigned int used)
{
	unsigned long long end = room->at + size + BPF_RING_SEAL_BYTES;
	unsigned long long used_end = room->at + used + BPF_RING_SEAL_BYTES;
	struct perf_event_header *filler;

	if (end == used_end || __sync_val_compare_and_swap(&room->ring->head, end, used_end) == end)
		return;
	/* Another program has reserved what follows. A filler needs a seal and a header. */
	filler = (void *)((char *)room->ring + BPF_RING_DATA_OFFSET + (used_end & ring_mask) +
			  BPF_RING_SEAL_BYTES);
	*filler = (struct perf_event_header){
		.type = BPF_RING_FILLER,
		.size = (unsigned short)(end - used_end - BPF_RING_SEAL_BYTES),
	};
	ring_seal(room->ring, used_end);
}

#endif
