/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "scan/snapshot/populated_pages.h"

#include <errno.h>
#include <sys/ioctl.h>
#include <unistd.h>

/*
 * The ioctl PAGEMAP_SCAN of Linux 6.7 (linux/fs.h), which skips what is not mapped.
 * Our build may have older headers.
 */
struct scan_request {
	uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages;
	uint64_t category_inverted, category_mask, category_anyof_mask, return_mask;
};
struct scan_answer {
	uint64_t start, end, categories;
};
#define SCAN_IOCTL	_IOWR('f', 16, struct scan_request)
#define SCAN_IS_FILE	(1u << 2)
#define SCAN_IS_PRESENT (1u << 3)
#define SCAN_IS_SWAPPED (1u << 4)
#define SCAN_IS_ZERO	(1u << 5)
#define SCAN_IS_GUARD	(1u << 8) /* Linux 6.15 */

/* Documentation/admin-guide/mm/pagemap.rst, 6.1 */
#define PAGEMAP_PRESENT	 (1ull << 63)
#define PAGEMAP_SWAPPED	 (1ull << 62)
#define PAGEMAP_FILE	 (1ull << 61)
#define PAGEMAP_GUARD	 (1ull << 58) /* Linux 6.15 */
#define PAGEMAP_OWN	 (1ull << 56) /* no other process has it */

#define NR_AT_A_TIME	 4096
#define MAX_REGION_BYTES (256ull << 30) /* without the ioctl: 8 bytes are read for each page */

static int scan(int fd, struct scan_region *region, uint64_t excluded)
{
	struct scan_answer answers[NR_AT_A_TIME / 16];
	struct scan_request request = {
		.size = sizeof(request),
		.start = region->start,
		.end = region->end,
		.vec = (uintptr_t)answers,
		.vec_len = sizeof(answers) / sizeof(answers[0]),
		.category_inverted = excluded,
		.category_mask = excluded,
		.category_anyof_mask = SCAN_IS_PRESENT | SCAN_IS_SWAPPED,
		.return_mask = SCAN_IS_PRESENT,
	};

	while (request.start < region->end) {
		int nr = ioctl(fd, SCAN_IOCTL, &request), err = 0;

		if (nr < 0)
			return -errno;
		for (int i = 0; i < nr && !err; i++)
			err = scan_region_add_run(region, answers[i].start, answers[i].end);
		if (err)
			return err;
		if (request.walk_end <= request.start)
			return -EIO;
		request.start = request.walk_end;
	}
	return 0;
}

static bool is_wanted(uint64_t entry, bool with_files)
{
	return (entry & (PAGEMAP_PRESENT | PAGEMAP_SWAPPED)) && !(entry & PAGEMAP_GUARD) &&
	       (with_files || !(entry & PAGEMAP_FILE));
}

static int read_entries(int fd, struct scan_region *region, bool with_files)
{
	uint64_t entries[NR_AT_A_TIME], address = region->start;
	const uint64_t page_bytes = (uint64_t)getpagesize(); /* AArch64: up to 64 KiB */

	if (region->end - region->start > MAX_REGION_BYTES)
		return -EFBIG;
	while (address < region->end) {
		uint64_t nr = (region->end - address) / page_bytes;
		ssize_t len;

		if (nr > NR_AT_A_TIME)
			nr = NR_AT_A_TIME;
		len = pread(fd, entries, nr * sizeof(entries[0]),
			    (off_t)(address / page_bytes * sizeof(entries[0])));
		if (len <= 0)
			return len < 0 ? -errno : -EIO;
		nr = (size_t)len / sizeof(entries[0]);
		for (uint64_t i = 0; i < nr; i++, address += page_bytes) {
			int err =
				is_wanted(entries[i], with_files)
					? scan_region_add_run(region, address, address + page_bytes)
					: 0;

			if (err)
				return err;
		}
	}
	return 0;
}

bool populated_pages_may_be_pinned(int pagemap_fd, uint64_t start, uint64_t end)
{
	const uint64_t page_bytes = (uint64_t)getpagesize();
	uint64_t entries[NR_AT_A_TIME], nr = (end - start) / page_bytes;

	if (nr > NR_AT_A_TIME || pread(pagemap_fd, entries, nr * sizeof(entries[0]),
				       (off_t)(start / page_bytes * sizeof(entries[0]))) !=
					 (ssize_t)(nr * sizeof(entries[0])))
		return false;
	for (uint64_t i = 0; i < nr; i++)
		if (!(entries[i] & PAGEMAP_PRESENT) || !(entries[i] & (PAGEMAP_OWN | PAGEMAP_FILE)))
			return false;
	return true;
}

int populated_pages_find(int pagemap_fd, struct scan_region *region, bool with_files)
{
	uint64_t excluded = SCAN_IS_ZERO | (with_files ? 0 : SCAN_IS_FILE);
	int err = scan(pagemap_fd, region, excluded | SCAN_IS_GUARD);

	if (err == -EINVAL)
		err = scan(pagemap_fd, region, excluded);
	if (err == -EINVAL || err == -ENOTTY)
		err = read_entries(pagemap_fd, region, with_files);
	return err;
}
