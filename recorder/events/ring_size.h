/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The size of the rings if the user gives none: so large that a busy server need not wait because
 * leakrec waits for a CPU, and small beside the memory that there is.
 */
#ifndef LEAKTOOLS_RECORDER_RING_SIZE_H
#define LEAKTOOLS_RECORDER_RING_SIZE_H

#include <stdint.h>

/* The pages of each CPU's ring, a power of two, for a machine or container with that memory. */
uint32_t ring_size_for(uint64_t memory_bytes, uint64_t nr_cpus, uint64_t page_bytes);

/* The same for this machine, and the cgroups that this process is in. */
uint32_t ring_size_default(void);

/* The most that is worth trying on this machine: the rings take a quarter of the memory together.
 */
uint32_t ring_size_most(void);

#endif
