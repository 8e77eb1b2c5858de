/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Places in the kernel where a program may have put pointers to its own memory, and which nobody
 * can look into: bytes that it has sent to itself and not read yet, requests of io_uring and AIO,
 * and what drivers hand back, such as the handles of a FUSE server's open files.
 * Nothing is read from its pipes and sockets, and none is opened: that may wake others, or keep a
 * pipe's writer from being told that nobody reads.
 */
#ifndef LEAKTOOLS_SCAN_UNSEEN_PLACES_H
#define LEAKTOOLS_SCAN_UNSEEN_PLACES_H

#include "scan/snapshot/snapshot.h"

/* Of a thread's descriptors, while they are listed. */
struct unseen_search {
	struct snapshot *snapshot;
	int dir_fd; /* /proc/TID/fd; the caller's */
	int pid_fd;
	struct pipe_end *ends;
	size_t nr_ends, nr_looks;
};

/* Of those of @thread. */
void unseen_search_init(struct unseen_search *ret, struct snapshot *snapshot, pid_t thread,
			int dir_fd);

/* Takes descriptor @name of the process, which is a link to @link. */
void unseen_search_add(struct unseen_search *search, const char *name, const char *link);

/* Counts what was found, in the snapshot. */
void unseen_search_finish(struct unseen_search *search);

#endif
