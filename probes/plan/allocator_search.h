/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finds the allocators of many processes, containers' included, by looking at each file once. Files
 * are told apart by their inodes. On overlayfs, which containers' roots are, the same inode below
 * shows through several mounts as several: there what does not differ at all is the same file, for
 * a uprobe is the inode's below.
 */
#ifndef LEAKTOOLS_PROBES_ALLOCATOR_SEARCH_H
#define LEAKTOOLS_PROBES_ALLOCATOR_SEARCH_H

#include "probes/plan/probe_set.h"

struct allocator_search;

/* Returns 0 or -ENOMEM, reported. */
int allocator_search_create(struct allocator_search **ret);
void allocator_search_destroy(struct allocator_search *search);

/* Times of the CPU that looking into files may take; what is 0 has no limit. */
struct allocator_search_limits {
	uint64_t slice_ns; /* then allocator_search_process() returns, if not with the first file */
	uint64_t user_ns;  /* of one owner's files; others of them are passed over, which is told */
	uint64_t window_ns; /* after so long, the owner has as much again */
};

/* To begin with, there is a limit for users that only those reach who mean to. */
void allocator_search_limit(struct allocator_search *search,
			    const struct allocator_search_limits *limits);

/*
 * Appends to @set the allocators that process @pid maps and that no process looked at before did.
 * Their files are kept open, whatever becomes of the process. One that is gone, or cannot be read,
 * is passed over. Returns 0; 1 if there is more to look at: call it again; or -ENOMEM, reported.
 */
int allocator_search_process(struct allocator_search *search, pid_t pid, struct probe_set *set);

/* Drops from @set the files that were seen before, in other processes, through another mount. */
void allocator_search_drop_seen(const struct allocator_search *search, struct probe_set *set);

/* The @nr'th file that was looked at; false if there are not so many. */
bool allocator_search_file(const struct allocator_search *search, size_t nr, dev_t *ret_device,
			   ino_t *ret_inode);

/* From now on takes what @pid maps for looked at. Returns 0 or -ENOMEM, reported. */
int allocator_search_skip(struct allocator_search *search, pid_t pid);

#endif
