/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/events/ring_size.h"

#include "common/proc/cgroup.h"

#include <unistd.h>

/* A busy server's samples of 100 ms and more. Larger ones are slower: they leave the CPU's caches.
 */
#define MAX_BYTES (UINT64_C(8) << 20)
/* perf_event_mlock_kb and RLIMIT_MEMLOCK bound those of perf events without CAP_IPC_LOCK. */
#define UNPRIVILEGED_MAX_BYTES (UINT64_C(2) << 20)
/* The verifier lets BPF programs add no more than 64 Ki pages of 4 KiB to a pointer. */
#define BPF_MAX_BYTES	 (UINT64_C(256) << 20)
#define MIN_BYTES	 (UINT64_C(512) << 10)
#define MEMORY_PART	 64 /* of the memory, for all rings together */
#define MOST_MEMORY_PART 4

static uint64_t largest_power_of_two(uint64_t number)
{
	return number ? UINT64_C(1) << (63 - __builtin_clzll(number)) : 1;
}

static uint32_t pages_for(uint64_t memory_bytes, uint64_t nr_cpus, uint64_t page_bytes,
			  uint64_t part, uint64_t max_bytes)
{
	uint64_t bytes = memory_bytes / part / (nr_cpus ? nr_cpus : 1);

	if (bytes < MIN_BYTES)
		bytes = MIN_BYTES;
	if (bytes > max_bytes)
		bytes = max_bytes;
	return (uint32_t)largest_power_of_two(bytes / page_bytes);
}

uint32_t ring_size_for(uint64_t memory_bytes, uint64_t nr_cpus, uint64_t page_bytes)
{
	return pages_for(memory_bytes, nr_cpus, page_bytes, MEMORY_PART, MAX_BYTES);
}

static uint32_t pages_here(uint64_t part, uint64_t max_bytes)
{
	uint64_t page_bytes = (uint64_t)getpagesize(), limit_bytes = cgroup_memory_limit();
	long nr_pages = sysconf(_SC_PHYS_PAGES), nr_cpus = sysconf(_SC_NPROCESSORS_CONF);
	uint64_t memory_bytes = nr_pages > 0 ? (uint64_t)nr_pages * page_bytes : 0;

	return pages_for(limit_bytes < memory_bytes ? limit_bytes : memory_bytes,
			 nr_cpus > 0 ? (uint64_t)nr_cpus : 1, page_bytes, part, max_bytes);
}

uint32_t ring_size_default(void)
{
	return pages_here(MEMORY_PART, geteuid() == 0 ? MAX_BYTES : UNPRIVILEGED_MAX_BYTES);
}

uint32_t ring_size_most(void)
{
	return pages_here(MOST_MEMORY_PART, BPF_MAX_BYTES);
}
