/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "scan/snapshot/shared_memory.h"

#include "scan/snapshot/file_kinds.h"
#include "scan/snapshot/populated_pages.h"

#include "common/clock.h"
#include "common/proc/living_thread.h"
#include "common/proc/proc_file.h"
#include "common/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#define PAGE_UP(offset)	  (((offset) + SCAN_PAGE_SIZE - 1) & ~(uint64_t)(SCAN_PAGE_SIZE - 1))
#define PAGE_DOWN(offset) ((offset) & ~(uint64_t)(SCAN_PAGE_SIZE - 1))

/* Of all files: to find one takes a microsecond, while the process waits. */
#define MAX_EXTENTS 65536

/*
 * Where the file cannot be opened, reading a page through the process gives it the page. It may get
 * that much by a scan.
 */
#define MAX_TOUCHED_BYTES (1u << 20)

#define PIECE_BYTES	  (1u << 20) /* so that the clock is looked at often */

struct finding {
	struct shared_memory *shared;
	struct scan_region *regions;
	struct file_kinds kinds;
	struct unread_memory *unread;
	pid_t pid;
	int pagemap_fd;
	size_t nr_extents;
	uint64_t touched_bytes;
};

/* --- which mappings --- */

/* The link's mode is how the program opened the file. */
static bool is_open_for_writing(const struct finding *finding, const struct scan_region *region)
{
	char path[PROC_FILE_PATH_SIZE];
	struct stat stat;

	proc_file_mapping_path(path, finding->pid, region->start, region->end);
	return lstat(path, &stat) < 0 || (stat.st_mode & S_IWUSR);
}

static bool is_deleted(const struct scan_region *region)
{
	static const char mark[] = " (deleted)";
	size_t len = strlen(region->path);

	return len >= sizeof(mark) - 1 &&
	       strcmp(region->path + len - (sizeof(mark) - 1), mark) == 0;
}

/*
 * True if the program may keep pointers in this file. It does not in a file that it only reads,
 * such as a library or a table of characters, unless the file is made for sharing memory. A device
 * that it cannot write to gets no pointers either.
 */
static bool is_worth_reading(const struct finding *finding, const struct scan_region *region)
{
	enum file_kind kind = file_kinds_of(&finding->kinds, region);

	if (!region->is_shared)
		return kind == FILE_MEMORY && is_open_for_writing(finding, region);
	if (region->is_writable || kind == FILE_MEMORY || kind == FILE_DEVICE)
		return region->is_writable || kind == FILE_MEMORY;
	return is_deleted(region) || is_open_for_writing(finding, region);
}

/* --- which pages of them --- */

/*
 * Pages that the process has in its page table; @all: the others count, too. Pages of a file that
 * waits for somebody are not touched.
 */
static int find_mapped(struct finding *finding, struct scan_region *region, bool all)
{
	enum file_kind kind = file_kinds_of(&finding->kinds, region);
	uint64_t missing = region->end - region->start;
	int err;

	region->nr_runs = 0;
	err = populated_pages_find(finding->pagemap_fd, region, true);
	if (err == -ENOMEM)
		return err;
	for (size_t i = 0; i < region->nr_runs; i++)
		missing -= region->runs[i].end - region->runs[i].start;
	if (!missing || (!all && !err))
		return 0;
	if (all && missing <= MAX_TOUCHED_BYTES - finding->touched_bytes && kind != FILE_OTHER &&
	    kind != FILE_NETWORK) {
		finding->touched_bytes += missing;
		region->nr_runs = 0;
		return scan_region_add_run(region, region->start, region->end);
	}
	unread_memory_add(finding->unread, region->start, missing);
	return 0;
}

/* Adds what the file holds from offset @from on: a hole has nothing, nor has what lies behind. */
static int find_data(struct finding *finding, struct scan_region *region, int fd, uint64_t from)
{
	uint64_t base = region->start - region->file_offset, end = region->end - base;

	while (from < end) {
		off_t data = lseek(fd, (off_t)from, SEEK_DATA), hole;
		uint64_t start, stop;

		if ((data < 0 && errno == ENXIO) || (data >= 0 && (uint64_t)data >= end))
			return 0;
		hole = data < 0 ? -1 : lseek(fd, data, SEEK_HOLE);
		if (hole < 0 || finding->nr_extents++ >= MAX_EXTENTS) {
			unread_memory_add(finding->unread, region->start, end - from);
			return 0;
		}
		start = PAGE_DOWN((uint64_t)data);
		stop = PAGE_UP((uint64_t)hole);
		if (stop > end)
			stop = end;
		if (scan_region_add_run(region, base + start, base + stop))
			return -ENOMEM;
		from = stop;
	}
	return 0;
}

/* Returns -ENODEV for a device, which must not be opened, or another negative errno. */
static int open_file(const struct finding *finding, const struct scan_region *region)
{
	char path[PROC_FILE_PATH_SIZE];
	_cleanup_close_ int file = -1;
	struct stat stat;
	int fd;

	proc_file_mapping_path(path, finding->pid, region->start, region->end);
	file = open(path, O_PATH | O_CLOEXEC);
	if (file < 0 || fstat(file, &stat) < 0)
		return -errno;
	if (!S_ISREG(stat.st_mode))
		return -ENODEV;
	if (stat.st_ino != region->inode) /* an overlay may show another file under its name */
		return -ESTALE;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int add_source(struct finding *finding, const struct scan_region *region, int fd)
{
	struct shared_memory *shared = finding->shared;

	/* Grows by doubling, whenever the number is a power of two. */
	if ((shared->nr & (shared->nr - 1)) == 0) {
		struct file_source *grown = reallocarray(
			shared->sources, shared->nr ? shared->nr * 2 : 1, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		shared->sources = grown;
	}
	shared->sources[shared->nr++] =
		(struct file_source){(size_t)(region - finding->regions), fd};
	return 0;
}

/* Each part of the file goes to the first of its mappings, which are by offset. */
static int find_in_file(struct finding *finding, struct scan_region **mappings, size_t nr, int fd)
{
	bool is_used = false;
	uint64_t done = 0;
	int err = 0;

	for (size_t i = 0; i < nr && !err; i++) {
		struct scan_region *region = mappings[i];
		uint64_t from = region->file_offset > done ? region->file_offset : done;
		uint64_t end = region->file_offset + (region->end - region->start);

		region->source = COPY_FILE;
		if (end <= done)
			continue;
		done = end;
		err = find_data(finding, region, fd, from);
		if (err || !region->nr_runs)
			continue;
		err = add_source(finding, region, fd);
		is_used |= !err;
	}
	if (!is_used)
		close(fd); /* or shared_memory_deinit() does */
	return err;
}

/* Finds the pages of one file, in all of its mappings. */
static int find_file(struct finding *finding, struct scan_region **mappings, size_t nr)
{
	enum file_kind kind = file_kinds_of(&finding->kinds, mappings[0]);
	bool is_wanted = false, has_code = false;
	int fd = kind == FILE_DEVICE ? -ENODEV : -EACCES, err = 0;

	for (size_t i = 0; i < nr; i++) {
		is_wanted |= is_worth_reading(finding, mappings[i]);
		has_code |= mappings[i]->is_executable;
	}
	if (!is_wanted)
		return 0;
	if (kind == FILE_DISK || kind == FILE_MEMORY)
		fd = open_file(finding, mappings[0]);
	for (size_t i = 0; i < nr; i++)
		mappings[i]->has_code = has_code;
	if (fd >= 0)
		return find_in_file(finding, mappings, nr, fd);
	for (size_t i = 0; i < nr && !err; i++) {
		mappings[i]->source = COPY_PAGES;
		if (fd != -ENODEV || mappings[i]->is_writable)
			err = find_mapped(finding, mappings[i], fd != -ENODEV);
	}
	return err;
}

/* The path, too: a SysV segment has its id for an inode, which a memfd may have as well. */
static int compare_files(const struct scan_region *x, const struct scan_region *y)
{
	if (x->device != y->device)
		return x->device < y->device ? -1 : 1;
	if (x->inode != y->inode)
		return x->inode < y->inode ? -1 : 1;
	return strcmp(x->path, y->path);
}

static int compare_mappings(const void *a, const void *b)
{
	const struct scan_region *x = *(struct scan_region *const *)a;
	const struct scan_region *y = *(struct scan_region *const *)b;
	int order = compare_files(x, y);

	return order				 ? order
	       : x->file_offset < y->file_offset ? -1
						 : x->file_offset > y->file_offset;
}

static int find_files(struct finding *finding, struct scan_region **mappings, size_t nr)
{
	int err = 0;

	if (nr)
		qsort(mappings, nr, sizeof(struct scan_region *), compare_mappings);
	for (size_t first = 0, next; first < nr && !err; first = next) {
		for (next = first + 1;
		     next < nr && compare_files(mappings[first], mappings[next]) == 0; next++)
			;
		err = find_file(finding, mappings + first, next - first);
	}
	return err;
}

int shared_memory_find(struct shared_memory *ret, struct scan_region *regions, size_t nr, pid_t pid,
		       int pagemap_fd, struct unread_memory *unread)
{
	struct finding finding = {.shared = ret,
				  .regions = regions,
				  .unread = unread,
				  .pid = living_thread(pid),
				  .pagemap_fd = pagemap_fd};
	_cleanup_free_ struct scan_region **shared = calloc(nr + 1, sizeof(struct scan_region *));
	size_t nr_shared = 0;
	int err;

	*ret = (struct shared_memory){0};
	if (!shared)
		return -ENOMEM;
	err = file_kinds_init(&finding.kinds, finding.pid);
	for (size_t i = 0; i < nr && !err; i++) {
		if (!regions[i].has_file)
			continue;
		regions[i].may_wait = file_kinds_of(&finding.kinds, &regions[i]) == FILE_OTHER;
		if (regions[i].is_shared)
			shared[nr_shared++] = &regions[i];
		else if (is_worth_reading(&finding, &regions[i]))
			err = find_mapped(&finding, &regions[i], true);
	}
	if (!err)
		err = find_files(&finding, shared, nr_shared);
	file_kinds_deinit(&finding.kinds);
	return err;
}

void shared_memory_deinit(struct shared_memory *shared)
{
	for (size_t i = 0; i < shared->nr; i++)
		if (i == 0 || shared->sources[i].fd != shared->sources[i - 1].fd)
			close(shared->sources[i].fd);
	free(shared->sources);
	*shared = (struct shared_memory){0};
}

/* --- the copy --- */

/* Where the file ends within a page, the process may use the rest of the page. */
static void copy_rest_of_page(const struct snapshot *snapshot, const struct scan_region *region,
			      uint64_t at)
{
	uint64_t size = PAGE_UP(at) - at;

	if (size &&
	    pread(snapshot->mem_fd, region->bytes + (at - region->start), size, (off_t)at) < 0)
		return; /* the file became shorter: the process cannot read it either */
}

static void copy_run(struct snapshot *snapshot, const struct scan_region *region, int fd,
		     const struct page_run *run, uint64_t end_ns)
{
	uint64_t base = region->start - region->file_offset, at = run->start;

	while (at < run->end) {
		uint64_t size = run->end - at < PIECE_BYTES ? run->end - at : PIECE_BYTES;
		bool is_late = clock_now_ns() > end_ns;
		ssize_t len = is_late ? -1
				      : pread(fd, region->bytes + (at - region->start), size,
					      (off_t)(at - base));

		if (len == 0)
			copy_rest_of_page(snapshot, region, at);
		if (len < 0) {
			unread_memory_add(&snapshot->unread, at, run->end - at);
			snapshot->unread.is_late |= is_late;
		}
		if (len <= 0)
			return;
		at += (uint64_t)len;
		snapshot->copied_bytes += (uint64_t)len;
	}
}

void shared_memory_copy(const struct shared_memory *shared, struct snapshot *snapshot,
			uint64_t end_ns)
{
	for (size_t i = 0; i < shared->nr; i++) {
		const struct scan_region *region = &snapshot->regions[shared->sources[i].region];

		for (size_t j = 0; j < region->nr_runs; j++)
			copy_run(snapshot, region, shared->sources[i].fd, &region->runs[j], end_ns);
	}
}
