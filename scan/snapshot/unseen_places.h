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

#define UNSEEN_MAX_TABLES 64

/* A table of descriptors: after unshare(CLONE_FILES), a thread has one of its own. */
struct descriptor_table {
	pid_t thread; /* one of those that have it */
	int pid_fd;
};

/* Of a process's descriptors, while they are listed. */
struct unseen_search {
	struct snapshot *snapshot;
	int dir_fd; /* /proc/TID/fd of the last table; the caller's */
	struct descriptor_table tables[UNSEEN_MAX_TABLES];
	size_t nr_tables;
	struct pipe_end *ends;
	size_t nr_ends, nr_looks;
};

void unseen_search_init(struct unseen_search *ret, struct snapshot *snapshot);

/* Goes on with the table of @thread; there must be room for it. */
void unseen_search_begin(struct unseen_search *search, pid_t thread, int dir_fd);

/* True if an earlier table has the same open file as the last one's @fd. */
bool unseen_search_knows(const struct unseen_search *search, int fd);

/* Takes descriptor @name of the last table, which is a link to @link. */
void unseen_search_add(struct unseen_search *search, const char *name, const char *link);

/* Counts what was found, in the snapshot. */
void unseen_search_finish(struct unseen_search *search);

#endif
