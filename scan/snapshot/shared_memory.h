/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory of files, to which other mappings and other processes write, too. Page tables do not tell
 * which of it holds something: after fork() or reclaim, a page may be in the file only. So it is
 * read from the file, once for all of its mappings, and the process gets no page by that.
 */
#ifndef LEAKTOOLS_SCAN_SHARED_MEMORY_H
#define LEAKTOOLS_SCAN_SHARED_MEMORY_H

#include "scan/snapshot/snapshot.h"

/* The file of a region, which is open. Regions of one file are neighbours. */
struct file_source {
	size_t region;
	int fd;
};

struct shared_memory {
	struct file_source *sources;
	size_t nr;
};

/*
 * Finds what is worth a copy in those of @regions, of @pid, that are of a file, and adds it to
 * their runs. What can hold pointers and cannot be copied is added to @unread. Returns 0 or
 * -ENOMEM; reports nothing. Release with shared_memory_deinit() in either case.
 */
int shared_memory_find(struct shared_memory *ret, struct scan_region *regions, size_t nr, pid_t pid,
		       int pagemap_fd, struct unread_memory *unread);
void shared_memory_deinit(struct shared_memory *shared);

/* Copies the runs that are read from files. What is not done at @end_ns is unread. */
void shared_memory_copy(const struct shared_memory *shared, struct snapshot *snapshot,
			uint64_t end_ns);

#endif
