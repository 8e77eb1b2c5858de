/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finds the allocators of many processes, containers included, and analyses each file once. Files
 * are identified by their inodes, and by size and times, since a new file may get the inode number
 * of a removed one. On overlayfs, the root file system of containers, the same lower inode appears
 * through several mounts as several. There, files whose attributes are all equal are the same,
 * since a uprobe is on the lower inode.
 */
#ifndef LEAKTOOLS_PROBES_ALLOCATOR_SEARCH_H
#define LEAKTOOLS_PROBES_ALLOCATOR_SEARCH_H

#include "probes/plan/probe_set.h"

struct allocator_search;

/* Returns 0 or -ENOMEM, reported. */
int allocator_search_create(struct allocator_search **ret);
void allocator_search_destroy(struct allocator_search *search);

/* CPU times that analysing files may take, and the memory of the search; 0: no limit. */
struct allocator_search_limits {
	uint64_t slice_ns; /* then allocator_search_process() returns, after at least one file */
	uint64_t user_ns; /* for the files of one owner; more of them are never probed, as a message
			     says */
	uint64_t window_ns; /* after this time, the owner's limit starts anew */
	size_t nr_files;    /* known without an allocator; and with one, beside root's */
};

/* All processes of a large machine map some ten thousand. */
#define ALLOCATOR_SEARCH_FILES 65536

/* By default, each user has a limit that only deliberately slow files reach. */
void allocator_search_limit(struct allocator_search *search,
			    const struct allocator_search_limits *limits);

/*
 * Appends to @set the allocators that process @pid maps, except in files that are known already,
 * and in those on FUSE: any user may serve these, and nobody named the process for them.
 * The files stay open, whatever happens to the process. A process that has ended or cannot be read
 * is skipped. Returns 0; 1 if there is more to analyse: call it again; or a negative errno,
 * reported.
 */
int allocator_search_process(struct allocator_search *search, pid_t pid, struct probe_set *set);

/* The file's content is changing: it is not known any more. */
void allocator_search_forget(struct allocator_search *search, const struct stat *stat);

/* Removes from @set the files that are known from other processes, through another mount. */
void allocator_search_drop_seen(const struct allocator_search *search, struct probe_set *set);

/* Gets the next known file; false: all were gotten. */
bool allocator_search_next(struct allocator_search *search, struct stat *ret);

/* Marks the files that @pid maps as known. Returns 0 or a negative errno, reported. */
int allocator_search_skip(struct allocator_search *search, pid_t pid);

#endif
