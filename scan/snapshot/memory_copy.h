/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copies the memory of a process that stands still. */
#ifndef LEAKTOOLS_SCAN_MEMORY_COPY_H
#define LEAKTOOLS_SCAN_MEMORY_COPY_H

#include "scan/snapshot/snapshot.h"

/*
 * Copies the runs of all regions, whose memory is reserved, but those that come from files. What
 * cannot be read is counted. @pagemap_fd: an open /proc/PID/pagemap. Returns 0, or -ETIMEDOUT after
 * @end_ns.
 */
int memory_copy(struct snapshot *snapshot, int pagemap_fd, uint64_t end_ns);

#endif
