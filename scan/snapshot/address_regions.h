/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The mappings of a process, with the pages of each that are worth a copy. */
#ifndef LEAKTOOLS_SCAN_ADDRESS_REGIONS_H
#define LEAKTOOLS_SCAN_ADDRESS_REGIONS_H

#include "scan/snapshot/shared_memory.h"
#include "scan/snapshot/snapshot.h"

struct address_regions {
	struct scan_region *regions; /* by start */
	size_t nr, capacity;
	uint64_t populated_bytes;
	struct unread_memory unread; /* the pages of this are not known */
	struct shared_memory shared;
};

/*
 * Reads the mappings of @pid. Nothing is copied. Returns 0 or a negative errno; reports nothing.
 * Release with address_regions_deinit() in either case.
 */
int address_regions_read(struct address_regions *ret, pid_t pid, int pagemap_fd);
void address_regions_deinit(struct address_regions *regions);

/* Allocates the copies' memory and touches it, so that copying does not have to. */
int address_regions_prepare(struct address_regions *regions);

/* Moves the memory that @prepared has for the same regions into @regions. */
void address_regions_take(struct address_regions *regions, struct address_regions *prepared);

/* Allocates the memory of those that have none yet. Returns 0 or -ENOMEM. */
int address_regions_reserve(struct address_regions *regions);

#endif
