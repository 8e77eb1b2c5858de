/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "scan/snapshot/memory_copy.h"

#include "scan/snapshot/populated_pages.h"

#include "common/clock.h"

#include <errno.h>
#include <sys/uio.h>
#include <unistd.h>

#define NR_PIECES   64	       /* of one call */
#define PIECE_BYTES (1u << 20) /* so that the clock is looked at often */

struct pieces {
	struct iovec local[NR_PIECES], remote[NR_PIECES];
	size_t nr;
	uint64_t bytes;
};

/*
 * Reads a piece page by page through /proc/PID/mem, which also reads what the process itself may
 * not (PROT_NONE). Returns how many bytes could not be read.
 */
static uint64_t copy_by_pages(int mem_fd, const struct iovec *local, uint64_t address)
{
	uint64_t unread = 0;
	size_t done = 0;

	while (done < local->iov_len) {
		ssize_t len = pread(mem_fd, (char *)local->iov_base + done, local->iov_len - done,
				    (off_t)(address + done));

		if (len > 0) {
			done += (size_t)len;
			continue;
		}
		unread += SCAN_PAGE_SIZE;
		done += SCAN_PAGE_SIZE;
	}
	return unread;
}

static void copy_pieces(struct snapshot *snapshot, enum copy_source source, struct pieces *pieces)
{
	size_t first = 0;

	while (first < pieces->nr) {
		ssize_t len =
			process_vm_readv(snapshot->pid, &pieces->local[first], pieces->nr - first,
					 &pieces->remote[first], pieces->nr - first, 0);
		uint64_t left = len > 0 ? (uint64_t)len : 0, address, unread;

		while (first < pieces->nr && left >= pieces->local[first].iov_len)
			left -= pieces->local[first++].iov_len;
		if (first == pieces->nr)
			break;
		address = (uintptr_t)pieces->remote[first].iov_base;
		unread = source == COPY_MEMORY
				 ? copy_by_pages(snapshot->mem_fd, &pieces->local[first], address)
				 : pieces->local[first].iov_len - left;
		if (unread)
			unread_memory_add(&snapshot->unread, address, unread);
		first++;
	}
	pieces->nr = 0;
	pieces->bytes = 0;
}

static void add_piece(struct pieces *pieces, const struct scan_region *region, uint64_t address,
		      uint64_t size)
{
	pieces->local[pieces->nr] = (struct iovec){region->bytes + (address - region->start), size};
	/* NOLINTNEXTLINE(performance-no-int-to-ptr): an address in the process */
	pieces->remote[pieces->nr] = (struct iovec){(void *)(uintptr_t)address, size};
	pieces->nr++;
	pieces->bytes += size;
}

/* By /proc/PID/mem, which takes 1.6 to 3 times as long as process_vm_readv(). */
static void copy_shared(struct snapshot *snapshot, const struct scan_region *region,
			uint64_t address, uint64_t size)
{
	struct iovec local = {region->bytes + (address - region->start), size};
	uint64_t unread = copy_by_pages(snapshot->mem_fd, &local, address);

	if (unread)
		unread_memory_add(&snapshot->unread, address, unread);
}

static int copy_region(struct snapshot *snapshot, const struct scan_region *region, int pagemap_fd,
		       uint64_t end_ns)
{
	struct pieces pieces = {.nr = 0};

	for (size_t i = 0; i < region->nr_runs; i++) {
		uint64_t end = region->runs[i].end, size;

		for (uint64_t at = region->runs[i].start; at < end; at += size) {
			size = end - at < PIECE_BYTES ? end - at : PIECE_BYTES;
			snapshot->copied_bytes += size;
			if (region->source == COPY_MEMORY &&
			    !populated_pages_may_be_pinned(pagemap_fd, at, at + size)) {
				copy_shared(snapshot, region, at, size);
				if (clock_now_ns() > end_ns)
					return -ETIMEDOUT;
				continue;
			}
			add_piece(&pieces, region, at, size);
			if (pieces.nr < NR_PIECES && pieces.bytes < 16 * (uint64_t)PIECE_BYTES)
				continue;
			copy_pieces(snapshot, region->source, &pieces);
			if (clock_now_ns() > end_ns)
				return -ETIMEDOUT;
		}
	}
	copy_pieces(snapshot, region->source, &pieces);
	return clock_now_ns() > end_ns ? -ETIMEDOUT : 0;
}

int memory_copy(struct snapshot *snapshot, int pagemap_fd, uint64_t end_ns)
{
	int err = 0;

	for (size_t i = 0; i < snapshot->nr_regions && !err; i++)
		if (snapshot->regions[i].source != COPY_FILE)
			err = copy_region(snapshot, &snapshot->regions[i], pagemap_fd, end_ns);
	return err;
}
