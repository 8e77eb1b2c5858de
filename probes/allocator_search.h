/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finds the allocators of many processes, containers' included, by looking at each file once. Files
 * are told apart by their inodes. On overlayfs, which containers' roots are, the same inode below
 * shows through several mounts as several: there what does not differ at all is the same file, for
 * a uprobe is the inode's below.
 */
#ifndef LEAKTOOLS_PROBES_ALLOCATOR_SEARCH_H
#define LEAKTOOLS_PROBES_ALLOCATOR_SEARCH_H

#include "probes/probe_set.h"

struct allocator_search;

/* Returns 0 or -ENOMEM, reported. */
int allocator_search_create(struct allocator_search **ret);
void allocator_search_destroy(struct allocator_search *search);

/*
 * Appends to @set the allocators that process @pid maps and that no process looked at before did.
 * Their files are kept open, whatever becomes of the process. One that is gone, or cannot be read,
 * is passed over. Returns 0 or -ENOMEM, reported.
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
