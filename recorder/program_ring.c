/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/program_ring.h"

#include <errno.h>
#include <linux/bpf.h>
#include <sys/mman.h>
#include <unistd.h>

int program_ring_init(struct program_ring *ret, int map_fd, size_t size_bytes)
{
	size_t page = (size_t)getpagesize();
	void *consumer, *producer;

	*ret = (struct program_ring){.size_bytes = size_bytes};
	consumer = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, map_fd, 0);
	if (consumer == MAP_FAILED)
		return -errno;
	producer = mmap(NULL, page + 2 * size_bytes, PROT_READ, MAP_SHARED, map_fd, (off_t)page);
	if (producer == MAP_FAILED) {
		int err = errno;

		munmap(consumer, page);
		return -err;
	}
	ret->consumer = consumer;
	ret->producer = producer;
	ret->data = (const char *)producer + page;
	return 0;
}

void program_ring_deinit(struct program_ring *ring)
{
	size_t page = (size_t)getpagesize();

	if (!ring->consumer)
		return;
	munmap(ring->consumer, page);
	munmap((void *)ring->producer, page + 2 * ring->size_bytes);
	ring->consumer = NULL;
}

const struct perf_event_header *program_ring_next(struct program_ring *ring, uint64_t end,
						  bool *ret_busy)
{
	while (ring->at < end) {
		const uint32_t *header =
			(const void *)(ring->data + (ring->at & (ring->size_bytes - 1)));
		uint32_t len = __atomic_load_n(header, __ATOMIC_ACQUIRE);
		uint32_t bytes = len & ~(BPF_RINGBUF_BUSY_BIT | BPF_RINGBUF_DISCARD_BIT);

		if (len & BPF_RINGBUF_BUSY_BIT) {
			*ret_busy = true;
			return NULL;
		}
		ring->at += (bytes + BPF_RINGBUF_HDR_SZ + 7) / 8 * 8;
		if (!(len & BPF_RINGBUF_DISCARD_BIT))
			return (const void *)((const char *)header + BPF_RINGBUF_HDR_SZ);
	}
	return NULL;
}

void program_ring_consume(struct program_ring *ring)
{
	__atomic_store_n(ring->consumer, ring->at, __ATOMIC_RELEASE);
}
