/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/programs/bpf_ring.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <sys/mman.h>

int bpf_ring_create_map(size_t size_bytes)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);

	return bpf_map_create(BPF_MAP_TYPE_ARRAY, "ring", sizeof(uint32_t),
			      (uint32_t)bpf_ring_value_bytes(size_bytes), 1, &opts);
}

int bpf_ring_init(struct bpf_ring *ret, int map_fd, size_t size_bytes, uint64_t secret)
{
	void *value = mmap(NULL, bpf_ring_value_bytes(size_bytes), PROT_READ | PROT_WRITE,
			   MAP_SHARED, map_fd, 0);

	*ret = (struct bpf_ring){.size_bytes = size_bytes, .secret = secret};
	if (value == MAP_FAILED)
		return -errno;
	ret->control = value;
	ret->data = (const char *)value + BPF_RING_DATA_OFFSET;
	return 0;
}

void bpf_ring_deinit(struct bpf_ring *ring)
{
	if (!ring->control)
		return;
	munmap(ring->control, bpf_ring_value_bytes(ring->size_bytes));
	ring->control = NULL;
}

const struct perf_event_header *bpf_ring_next(struct bpf_ring *ring, uint64_t end, bool *ret_busy)
{
	while (ring->at < end) {
		const char *at = ring->data + (ring->at & (ring->size_bytes - 1));
		const struct perf_event_header *header = (const void *)(at + BPF_RING_SEAL_BYTES);

		if (__atomic_load_n((const uint64_t *)at, __ATOMIC_ACQUIRE) !=
		    (ring->at ^ ring->secret)) {
			*ret_busy = true;
			return NULL;
		}
		ring->at += BPF_RING_SEAL_BYTES + header->size;
		if (header->type != BPF_RING_FILLER)
			return header;
	}
	return NULL;
}

void bpf_ring_consume(struct bpf_ring *ring)
{
	__atomic_store_n(&ring->control->tail, ring->at, __ATOMIC_RELEASE);
}
