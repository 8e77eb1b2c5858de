/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads a BPF ring (bpf_ring_shared.h). */
#ifndef LEAKTOOLS_RECORDER_BPF_RING_H
#define LEAKTOOLS_RECORDER_BPF_RING_H

#include "recorder/bpf/bpf_ring_shared.h"

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bpf_ring {
	struct bpf_ring_control *control; /* NULL: there is no ring */
	const char *data;
	size_t size_bytes; /* a power of two */
	uint64_t secret;
	uint64_t at;	  /* of the next record to read */
	uint64_t nr_read; /* records that were consumed; the reader counts them, */
	uint64_t nr_lost; /* and samples that found no room */
};

/* The bytes of a ring's value in its map, for @size_bytes of records. */
static inline size_t bpf_ring_value_bytes(size_t size_bytes)
{
	return BPF_RING_DATA_OFFSET + size_bytes + BPF_RING_SLACK_BYTES;
}

/* Creates the map of a ring. Returns its descriptor or a negative errno, not reported. */
int bpf_ring_create_map(size_t size_bytes);

/*
 * Maps the ring of @size_bytes from the BPF array @map_fd. The programs know the same @secret.
 * Returns 0 or a negative errno, not reported.
 */
int bpf_ring_init(struct bpf_ring *ret, int map_fd, size_t size_bytes, uint64_t secret);
void bpf_ring_deinit(struct bpf_ring *ring);

/*
 * Returns the next record before position @end, or NULL. Sets *@ret_busy if a program is still
 * writing it. The record is valid until bpf_ring_consume(), which gives the space back.
 */
const struct perf_event_header *bpf_ring_next(struct bpf_ring *ring, uint64_t end, bool *ret_busy);
void bpf_ring_consume(struct bpf_ring *ring);

/* The position after the last record that has been given room. */
static inline uint64_t bpf_ring_end(const struct bpf_ring *ring)
{
	return __atomic_load_n(&ring->control->head, __ATOMIC_ACQUIRE);
}

/* Records that were given room but never read; exact when no program runs any more. */
static inline uint64_t bpf_ring_nr_unread(const struct bpf_ring *ring)
{
	return __atomic_load_n(&ring->control->records, __ATOMIC_ACQUIRE) - ring->nr_read;
}

#endif
