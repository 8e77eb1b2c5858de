/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What mmap, munmap, mremap and brk do to the mappings of a process (region_map.h), told by the
 * ends of the system calls. What a call unmaps is taken at its entry, because the kernel may give
 * the range to another thread before its return is seen, and put back if the call fails. What it
 * maps is there at its return. docs/mappings.md has the rules.
 *
 * A region counts as a block of memory does: the sink is told, as heap_calls.h tells it. When a
 * part is unmapped, it is as if the parts had been mapped one by one. The regions that are the
 * allocator's own count for nothing but their sum.
 */
#ifndef LEAKTOOLS_PARSER_MAPPING_CALLS_H
#define LEAKTOOLS_PARSER_MAPPING_CALLS_H

#include "parser/calls/heap_sink.h"

/*
 * Takes an end of one of the system calls of SYSCALL_MAPPINGS. @map is that of the thread's
 * process. @owner: of what is mapped, by the stack. Returns 0 or -ENOMEM.
 */
int mapping_calls_handle(struct heap_sink *sink, struct thread *thread, struct region_map *map,
			 const struct perf_sample *sample, uint32_t stack_id,
			 enum mapping_owner owner);

#endif
