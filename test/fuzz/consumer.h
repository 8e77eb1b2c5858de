/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A consumer of fuzzed input: it touches every byte that it gets, and passes events to a heap
 * tracker. It places and names no stacks, because that would open the files that the input names.
 */
#ifndef LEAKTOOLS_TEST_FUZZ_CONSUMER_H
#define LEAKTOOLS_TEST_FUZZ_CONSUMER_H

#include "parser/calls/heap_tracker.h"
#include "parser/perfdata/perf_input.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static uint64_t fuzz_sum; /* of the touched bytes */

static inline void fuzz_touch(const void *bytes, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		fuzz_sum += ((const uint8_t *)bytes)[i];
}

static inline void fuzz_touch_sample(const struct perf_sample *sample)
{
	fuzz_touch(sample->callchain, sample->nr_callchain * sizeof(uint64_t));
	if (!sample->has_dump)
		return;
	fuzz_touch(sample->dump.regs,
		   (size_t)__builtin_popcountll(sample->dump.regs_mask) * sizeof(uint64_t));
	fuzz_touch(sample->dump.bytes, sample->dump.nr_bytes);
}

static inline int fuzz_on_sample(void *context, const struct perf_sample *sample)
{
	fuzz_touch_sample(sample);
	return heap_tracker_sample(context, sample, 1);
}

/* Returns true, so that small heaps are prefetched, too. */
static inline bool fuzz_prefetch(const void *context, uint64_t address, bool sooner)
{
	const struct block_prefetch *tracker = heap_tracker_block_prefetch(context);

	tracker->fetch(tracker->context, address, sooner);
	return true;
}

static inline int fuzz_on_mmap(void *context, const struct perf_mmap_record *record)
{
	fuzz_touch(record->mapping.path, strlen(record->mapping.path));
	fuzz_touch(record->mapping.build_id, record->mapping.build_id_size);
	return 0;
}

static inline int fuzz_on_fork(void *context, const struct perf_task_record *record)
{
	return heap_tracker_fork(context, record);
}

static inline int fuzz_on_exit(void *context, const struct perf_task_record *record)
{
	return heap_tracker_exit(context, record);
}

static inline int fuzz_on_comm(void *context, const struct perf_comm_record *record)
{
	return heap_tracker_comm(context, record);
}

static inline int fuzz_on_lost(void *context, const struct perf_lost_record *record)
{
	fuzz_sum += record->lost;
	return 0;
}

static inline int fuzz_on_build_id(void *context, const char *path, const uint8_t *build_id,
				   uint8_t size)
{
	fuzz_touch(path, strlen(path));
	fuzz_touch(build_id, size);
	return 0;
}

static inline int fuzz_on_name(void *context, const char *path, uint64_t file_offset,
			       const char *function, uint64_t function_offset)
{
	fuzz_touch(path, strlen(path));
	fuzz_touch(function, strlen(function));
	return 0;
}

/* Reads the bytes as leakparse reads a file: mapped or, if their number is odd, copied. */
static inline void fuzz_read(const uint8_t *bytes, size_t nr)
{
	struct resource_schemas resources = {0};
	struct perf_input_stats stats = {0};
	struct heap_tracker *tracker;
	const struct heap_block *held;
	size_t nr_held;
	int fd = memfd_create("input", MFD_CLOEXEC);

	if (fd < 0 || heap_tracker_create(NULL, &tracker))
		abort();
	const struct block_prefetch prefetch = {tracker, fuzz_prefetch};
	const struct perf_consumer consumer = {
		.context = tracker,
		.resources = &resources,
		.block_prefetch = &prefetch,
		.on_sample = fuzz_on_sample,
		.on_mmap = fuzz_on_mmap,
		.on_fork = fuzz_on_fork,
		.on_exit = fuzz_on_exit,
		.on_comm = fuzz_on_comm,
		.on_lost = fuzz_on_lost,
		.on_build_id = fuzz_on_build_id,
		.on_name = fuzz_on_name,
	};

	if ((nr == 0 || write(fd, bytes, nr) == (ssize_t)nr) &&
	    fchmod(fd, nr % 2 ? 0666 : 0600) == 0)
		perf_input_read(fd, "input", &consumer, &stats);
	if (heap_tracker_finish(tracker) == 0 && heap_tracker_held(tracker, &held, &nr_held) == 0)
		fuzz_touch(held, nr_held * sizeof(*held));
	heap_tracker_destroy(tracker);
	resource_schemas_deinit(&resources);
	close(fd);
}

#endif
