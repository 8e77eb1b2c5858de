/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "scan/snapshot/snapshot.h"

#include "common/partition_point.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

void snapshot_init(struct snapshot *ret)
{
	*ret = (struct snapshot){.mem_fd = -1};
}

void unread_memory_add(struct unread_memory *unread, uint64_t address, uint64_t bytes)
{
	if (!unread->bytes)
		unread->address = address;
	unread->bytes += bytes;
}

void scan_regions_free(struct scan_region *regions, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		if (regions[i].bytes)
			munmap(regions[i].bytes, regions[i].buffer_bytes);
		free(regions[i].runs);
		free(regions[i].path);
	}
	free(regions);
}

void snapshot_deinit(struct snapshot *snapshot)
{
	scan_regions_free(snapshot->regions, snapshot->nr_regions);
	for (size_t i = 0; i < snapshot->nr_threads; i++)
		thread_registers_deinit(&snapshot->threads[i].registers);
	free(snapshot->threads);
	free(snapshot->kernel_pointers);
	if (snapshot->mem_fd >= 0)
		close(snapshot->mem_fd);
	snapshot_init(snapshot);
}

size_t snapshot_region_index(const struct snapshot *snapshot, uint64_t address)
{
	return partition_point(snapshot->nr_regions, i, snapshot->regions[i].end <= address);
}

const struct scan_region *snapshot_region(const struct snapshot *snapshot, uint64_t address)
{
	size_t i = snapshot_region_index(snapshot, address);

	return i < snapshot->nr_regions && snapshot->regions[i].start <= address
		       ? &snapshot->regions[i]
		       : NULL;
}

const uint8_t *snapshot_bytes(const struct snapshot *snapshot, uint64_t address, uint64_t size)
{
	const struct scan_region *region = snapshot_region(snapshot, address);

	if (!region || !region->bytes || size > region->end - address)
		return NULL;
	return region->bytes + (address - region->start);
}

/* The first of the region's runs that ends behind @address, or NULL. */
static const struct page_run *find_run(const struct scan_region *region, uint64_t address)
{
	size_t first = partition_point(region->nr_runs, i, region->runs[i].end <= address);

	return first < region->nr_runs ? &region->runs[first] : NULL;
}

/* True if the page of @address was copied. */
static bool was_copied(const struct scan_region *region, uint64_t address)
{
	const struct page_run *run = find_run(region, address);

	return run && run->start <= address;
}

bool snapshot_next_copied(const struct snapshot *snapshot, uint64_t *address, uint64_t end,
			  uint64_t *ret_end)
{
	for (size_t i = snapshot_region_index(snapshot, *address);
	     i < snapshot->nr_regions && snapshot->regions[i].start < end; i++) {
		const struct scan_region *region = &snapshot->regions[i];
		const struct page_run *run = region->bytes ? find_run(region, *address) : NULL;

		if (!run)
			continue;
		if (run->start > *address)
			*address = run->start;
		*ret_end = run->end < end ? run->end : end;
		return *address < end;
	}
	return false;
}

bool snapshot_read(const struct snapshot *snapshot, uint64_t address, void *to, size_t size)
{
	char *out = to;

	while (size > 0) {
		const struct scan_region *region = snapshot_region(snapshot, address);
		size_t part = SCAN_PAGE_SIZE - address % SCAN_PAGE_SIZE;

		if (part > size)
			part = size;
		if (!region)
			return false;
		if (region->bytes && (was_copied(region, address) || !region->has_file))
			memcpy(out, region->bytes + (address - region->start), part);
		else if (snapshot->mem_fd < 0 || !region->has_file || region->is_shared ||
			 region->may_wait ||
			 pread(snapshot->mem_fd, out, part, (off_t)address) != (ssize_t)part)
			return false;
		out += part;
		address += part;
		size -= part;
	}
	return true;
}

int scan_region_reserve(struct scan_region *region, size_t buffer_bytes)
{
	void *bytes = mmap(NULL, buffer_bytes, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (bytes == MAP_FAILED)
		return -errno;
	/* A forked child would make every page that is written later a copy. */
	madvise(bytes, buffer_bytes, MADV_DONTFORK);
	region->bytes = bytes;
	region->buffer_bytes = buffer_bytes;
	return 0;
}

int scan_region_add_run(struct scan_region *region, uint64_t start, uint64_t end)
{
	struct page_run *grown;

	if (region->nr_runs && region->runs[region->nr_runs - 1].end == start) {
		region->runs[region->nr_runs - 1].end = end;
		return 0;
	}
	/* Grows by doubling, whenever the number is a power of two. */
	if ((region->nr_runs & (region->nr_runs - 1)) == 0) {
		grown = reallocarray(region->runs, region->nr_runs ? region->nr_runs * 2 : 1,
				     sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		region->runs = grown;
	}
	region->runs[region->nr_runs++] = (struct page_run){start, end};
	return 0;
}
