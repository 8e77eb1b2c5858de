/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which pages of a process hold something that is its own: /proc/PID/pagemap. */
#ifndef LEAKTOOLS_SCAN_POPULATED_PAGES_H
#define LEAKTOOLS_SCAN_POPULATED_PAGES_H

#include "scan/snapshot/snapshot.h"

/*
 * Adds the pages of @region that are in RAM or swap to its runs: those that the process wrote;
 * @with_files: also those of its file that it has in its page table. @pagemap_fd: an open
 * /proc/PID/pagemap. Returns 0; -EFBIG if the region is too large for this kernel (before Linux
 * 6.7); or another negative errno.
 */
int populated_pages_find(int pagemap_fd, struct scan_region *region, bool with_files);

/*
 * False if process_vm_readv() of these pages would give the process memory that it does not have:
 * it pins what it reads. Since Linux 5.19, an anonymous page of several processes, as after fork()
 * or by KSM, is copied for that (gup_must_unshare(), mm/internal.h, 6.18). To read /proc/PID/mem
 * does not pin (__access_remote_vm(), mm/memory.c). A page that is in swap may be such a one.
 */
bool populated_pages_may_be_pinned(int pagemap_fd, uint64_t start, uint64_t end);

#endif
