/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Applies mmap, munmap, mremap and brk to the mappings of a process (region_map.h), by the entries
 * and exits of the system calls. A call unmaps at its entry, because the kernel may give the range
 * to another thread before the exit is seen, and the mappings are restored if it fails. It maps at
 * its exit. docs/mappings.md has the rules.
 *
 * A region counts like a block of memory, and the sink is told of it (heap_sink.h). Unmapping a
 * part counts as if the parts had been mapped one by one. Of the allocator's own regions only the
 * sum is counted.
 */
#ifndef LEAKTOOLS_PARSER_MAPPING_CALLS_H
#define LEAKTOOLS_PARSER_MAPPING_CALLS_H

#include "parser/calls/heap_sink.h"

/*
 * Handles the entry or exit of a system call of SYSCALL_MAPPINGS. @map is that of the thread's
 * process, @owner the owner of a new mapping by its stack. Returns 0 or -ENOMEM.
 */
int mapping_calls_handle(struct heap_sink *sink, struct thread *thread, struct region_map *map,
			 const struct perf_sample *sample, uint32_t stack_id,
			 enum mapping_owner owner);

#endif
