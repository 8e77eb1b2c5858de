/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "scan/snapshot/address_regions.h"

#include "scan/snapshot/populated_pages.h"

#include "common/proc/living_thread.h"
#include "common/proc/proc_file.h"
#include "common/proc/process_maps.h"
#include "common/scope.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE /* Linux 5.14 */
#define MADV_POPULATE_WRITE 23
#endif

/* Of shared memory: more would not be copied in time, and not all memory may be ours to take. */
#define MAX_SHARED_TOUCHED (1ull << 30)

/* A heap may grow between the preparation and the stop. */
#define GROWTH_BYTES(size) ((size) / 8 + (1u << 20))

/* Private memory holds pointers wherever it is, but for what the kernel adds. */
static bool is_worth_reading(const struct scan_region *region)
{
	static const char *const special[] = {"[vvar]", "[vvar_vclock]", "[vdso]", "[vsyscall]"};

	for (size_t i = 0; i < ARRAY_SIZE(special); i++)
		if (strcmp(region->path, special[i]) == 0)
			return false;
	return !region->is_shared;
}

static int add_region(struct address_regions *regions, const struct process_mapping *mapping)
{
	struct scan_region *region;

	if (regions->nr == regions->capacity) {
		size_t capacity = regions->capacity ? regions->capacity * 2 : 64;

		region = reallocarray(regions->regions, capacity, sizeof(*region));
		if (!region)
			return -ENOMEM;
		regions->regions = region;
		regions->capacity = capacity;
	}
	region = &regions->regions[regions->nr];
	*region = (struct scan_region){
		.start = mapping->start,
		.end = mapping->end,
		.is_readable = mapping->permissions[0] == 'r',
		.is_writable = mapping->permissions[1] == 'w',
		.is_executable = mapping->permissions[2] == 'x',
		.is_shared = mapping->permissions[3] == 's',
		.file_offset = mapping->file_offset,
		.device = (uint64_t)mapping->major << 32 | mapping->minor,
		.inode = mapping->inode,
		/* show_map_vma(), fs/proc/task_mmu.c, 6.18: all are 0 without a file. A SysV
		 * segment's inode is its id (newseg(), ipc/shm.c), which begins with 0. */
		.has_file = mapping->inode || mapping->major || mapping->minor,
		.path = strdup(mapping->path),
	};
	if (!region->path)
		return -ENOMEM;
	regions->nr++;
	return 0;
}

static int find_pages(struct address_regions *regions, struct scan_region *region, int pagemap_fd)
{
	int err;

	if (!is_worth_reading(region))
		return 0;
	err = populated_pages_find(pagemap_fd, region, false);
	if (err && err != -ENOMEM)
		unread_memory_add(&regions->unread, region->start, region->end - region->start);
	return err == -ENOMEM ? err : 0;
}

/*
 * True if the kernel has two mappings for what the process sees as one: flags that do not matter
 * here differ. A heap may be such a one; in it, programs also forbid access to pages of blocks.
 */
static bool are_one(const struct scan_region *region, const struct scan_region *next)
{
	return region->end == next->start && !region->has_file && !next->has_file &&
	       !region->is_shared && !next->is_shared && strcmp(region->path, next->path) == 0 &&
	       (strcmp(region->path, "[heap]") == 0 ||
		(region->is_readable == next->is_readable &&
		 region->is_writable == next->is_writable &&
		 region->is_executable == next->is_executable));
}

/* Makes the last region a part of the one before it, if they are one. */
static int merge_last(struct address_regions *regions)
{
	struct scan_region *last, *region;
	int err = 0;

	if (regions->nr < 2)
		return 0;
	last = &regions->regions[regions->nr - 1];
	region = last - 1;
	if (!are_one(region, last))
		return 0;
	for (size_t i = 0; i < last->nr_runs && !err; i++)
		err = scan_region_add_run(region, last->runs[i].start, last->runs[i].end);
	region->end = last->end;
	region->is_readable |= last->is_readable;
	region->is_writable |= last->is_writable;
	region->is_executable |= last->is_executable;
	free(last->runs);
	free(last->path);
	regions->nr--;
	return err;
}

static uint64_t bytes_in_runs(const struct scan_region *region)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < region->nr_runs; i++)
		bytes += region->runs[i].end - region->runs[i].start;
	return bytes;
}

int address_regions_read(struct address_regions *ret, pid_t pid, int pagemap_fd)
{
	_cleanup_fclose_ FILE *maps = proc_file_open(living_thread(pid), "maps");
	_cleanup_free_ char *line = NULL;
	struct process_mapping mapping;
	size_t capacity = 0;
	uint64_t end = 0;
	int err = 0;

	*ret = (struct address_regions){0};
	if (!maps)
		return -errno;
	while (!err && getline(&line, &capacity, maps) > 0) {
		/* A list that is read while it changes may repeat itself. */
		if (process_maps_parse_line(line, &mapping) || mapping.start < end)
			continue;
		end = mapping.end;
		err = add_region(ret, &mapping);
		if (!err)
			err = find_pages(ret, &ret->regions[ret->nr - 1], pagemap_fd);
		if (!err)
			err = merge_last(ret);
	}
	if (!err && !ret->nr)
		err = -ESRCH;
	if (!err)
		err = shared_memory_find(&ret->shared, ret->regions, ret->nr, pid, pagemap_fd,
					 &ret->unread);
	for (size_t i = 0; i < ret->nr; i++)
		ret->populated_bytes += bytes_in_runs(&ret->regions[i]);
	return err;
}

void address_regions_deinit(struct address_regions *regions)
{
	shared_memory_deinit(&regions->shared);
	scan_regions_free(regions->regions, regions->nr);
	*regions = (struct address_regions){0};
}

/* Touches the memory for copies of the runs, as far as they fill aligned pieces of @unit bytes. */
static int touch_runs(const struct scan_region *region, size_t unit)
{
	uintptr_t base = (uintptr_t)region->bytes;

	for (size_t i = 0; i < region->nr_runs; i++) {
		const struct page_run *run = &region->runs[i];
		uintptr_t start = base + (run->start - region->start) + unit - 1;
		uintptr_t end = base + (run->end - region->start);

		start -= start % unit;
		end -= end % unit;
		if (start < end &&
		    madvise(region->bytes + (start - base), end - start, MADV_POPULATE_WRITE) < 0 &&
		    errno == ENOMEM)
			return -ENOMEM;
	}
	return 0;
}

/*
 * Huge pages are faster, but a run of one small page would take a huge one, too. So only what fills
 * a huge page gets one. Its size is what a page of entries maps: 2 MiB with pages of 4 KiB.
 */
static int prepare_region(struct scan_region *region, bool touch)
{
	size_t size = region->end - region->start, page = (size_t)getpagesize();
	int err = scan_region_reserve(region, size + GROWTH_BYTES(size));

	if (err)
		return err;
	madvise(region->bytes, region->buffer_bytes, MADV_HUGEPAGE);
	if (!touch && region->nr_runs == 1)
		return 0;
	err = touch ? touch_runs(region, page * (page / sizeof(uint64_t))) : 0;
	/* What is huge by now remains so. */
	madvise(region->bytes, region->buffer_bytes, MADV_NOHUGEPAGE);
	return !err && touch ? touch_runs(region, page) : err;
}

int address_regions_prepare(struct address_regions *regions)
{
	uint64_t shared = 0;
	int err = 0;

	for (size_t i = 0; i < regions->nr && !err; i++) {
		struct scan_region *region = &regions->regions[i];

		if (region->is_shared)
			shared += bytes_in_runs(region);
		if (region->nr_runs)
			err = prepare_region(region,
					     !region->is_shared || shared <= MAX_SHARED_TOUCHED);
	}
	return err;
}

void address_regions_take(struct address_regions *regions, struct address_regions *prepared)
{
	size_t at = 0;

	for (size_t i = 0; i < regions->nr; i++) {
		struct scan_region *region = &regions->regions[i], *from;

		while (at < prepared->nr && prepared->regions[at].start < region->start)
			at++;
		if (at == prepared->nr)
			return;
		from = &prepared->regions[at];
		if (!region->nr_runs || from->start != region->start ||
		    from->buffer_bytes < region->end - region->start)
			continue;
		region->bytes = steal_ptr(from->bytes);
		region->buffer_bytes = from->buffer_bytes;
	}
}

int address_regions_reserve(struct address_regions *regions)
{
	int err = 0;

	for (size_t i = 0; i < regions->nr && !err; i++) {
		struct scan_region *region = &regions->regions[i];

		if (region->nr_runs && !region->bytes)
			err = scan_region_reserve(region, region->end - region->start);
	}
	return err;
}
