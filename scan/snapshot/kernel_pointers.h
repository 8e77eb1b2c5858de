/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Pointers that the kernel keeps for a process: the data of epoll, the values of timers. Places
 * where it may keep others are counted (unseen_places.h).
 */
#ifndef LEAKTOOLS_SCAN_KERNEL_POINTERS_H
#define LEAKTOOLS_SCAN_KERNEL_POINTERS_H

#include "scan/snapshot/snapshot.h"

/*
 * Reads /proc/PID/fdinfo, also of threads with descriptors of their own, and /proc/PID/timers.
 * Returns 0, -ENOMEM, or -ETIMEDOUT after @end_ns (CLOCK_MONOTONIC).
 */
int kernel_pointers_read(struct snapshot *snapshot, uint64_t end_ns);

/* Parses a line of /proc/PID/fdinfo/N: "tfd: 5 events: 19 data: 7f00..."; false: not of epoll. */
bool kernel_pointer_parse_epoll(const char *line, uint64_t *ret);

/* Parses a line of /proc/PID/timers: "signal: 10/00007f00..."; false: another line. */
bool kernel_pointer_parse_timer(const char *line, uint64_t *ret);

#endif
