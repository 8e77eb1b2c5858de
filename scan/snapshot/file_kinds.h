/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What kind of file a mapping is of. It is told without a look at the file: to open one may have
 * effects, or wait for a server.
 */
#ifndef LEAKTOOLS_SCAN_FILE_KINDS_H
#define LEAKTOOLS_SCAN_FILE_KINDS_H

#include "scan/snapshot/snapshot.h"

#include <stdio.h>

enum file_kind {
	FILE_OTHER,   /* to read it may wait for ever: for a program (FUSE) of any user */
	FILE_NETWORK, /* to read it may wait: for what the administrator has mounted */
	FILE_DISK,    /* of a local file system */
	FILE_MEMORY,  /* has no other place: shared memory, memfd, tmpfs, huge pages */
	FILE_DEVICE,
};

struct file_kinds {
	struct file_system *systems; /* by device */
	size_t nr;
};

/* Reads which file systems @pid, or this process, has mounted. Returns 0 or -ENOMEM. */
int file_kinds_init(struct file_kinds *ret, pid_t pid);
void file_kinds_deinit(struct file_kinds *kinds);

/* Adds those of @mountinfo (proc(5)). Returns 0 or -ENOMEM. */
int file_kinds_add(struct file_kinds *kinds, FILE *mountinfo);

enum file_kind file_kinds_of(const struct file_kinds *kinds, const struct scan_region *region);

#endif
