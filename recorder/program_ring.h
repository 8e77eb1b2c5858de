/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The recorder's end of a BPF ring buffer (Documentation/bpf/ringbuf.rst): one CPU's, which the
 * recording programs fill with perf records.
 */
#ifndef LEAKTOOLS_RECORDER_PROGRAM_RING_H
#define LEAKTOOLS_RECORDER_PROGRAM_RING_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct program_ring {
	uint64_t *consumer;	  /* counted on when the ring wraps; the kernel looks at it */
	const uint64_t *producer; /* the kernel's */
	const char *data;	  /* mapped twice in a row: no record wraps */
	size_t size_bytes;
	uint64_t at; /* of the next record to read */
};

/* Maps the ring @map_fd of @size_bytes. Returns 0 or a negative errno, not reported. */
int program_ring_init(struct program_ring *ret, int map_fd, size_t size_bytes);
void program_ring_deinit(struct program_ring *ring);

/*
 * The next record before position @end, or NULL. *@ret_busy is set if that is because a program is
 * still writing it. It is valid until program_ring_consume(), which gives the space back.
 */
const struct perf_event_header *program_ring_next(struct program_ring *ring, uint64_t end,
						  bool *ret_busy);
void program_ring_consume(struct program_ring *ring);

/* The position behind the last record that has room in the ring by now. */
static inline uint64_t program_ring_end(const struct program_ring *ring)
{
	return __atomic_load_n(ring->producer, __ATOMIC_ACQUIRE);
}

#endif
