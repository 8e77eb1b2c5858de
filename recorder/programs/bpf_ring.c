/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/programs/bpf_ring.h"

#include <errno.h>
#include <sys/mman.h>

int program_ring_init(struct program_ring *ret, int map_fd, size_t size_bytes, uint64_t secret)
{
	void *value = mmap(NULL, program_ring_value_bytes(size_bytes), PROT_READ | PROT_WRITE,
			   MAP_SHARED, map_fd, 0);

	*ret = (struct program_ring){.size_bytes = size_bytes, .secret = secret};
	if (value == MAP_FAILED)
		return -errno;
	ret->control = value;
	ret->data = (const char *)value + PROGRAM_RING_DATA_OFFSET;
	return 0;
}

void program_ring_deinit(struct program_ring *ring)
{
	if (!ring->control)
		return;
	munmap(ring->control, program_ring_value_bytes(ring->size_bytes));
	ring->control = NULL;
}

const struct perf_event_header *program_ring_next(struct program_ring *ring, uint64_t end,
						  bool *ret_busy)
{
	while (ring->at < end) {
		const char *at = ring->data + (ring->at & (ring->size_bytes - 1));
		const struct perf_event_header *header =
			(const void *)(at + PROGRAM_RING_SEAL_BYTES);

		if (__atomic_load_n((const uint64_t *)at, __ATOMIC_ACQUIRE) !=
		    (ring->at ^ ring->secret)) {
			*ret_busy = true;
			return NULL;
		}
		ring->at += PROGRAM_RING_SEAL_BYTES + header->size;
		if (header->type != PROGRAM_RING_FILLER)
			return header;
	}
	return NULL;
}

void program_ring_consume(struct program_ring *ring)
{
	__atomic_store_n(&ring->control->tail, ring->at, __ATOMIC_RELEASE);
}
