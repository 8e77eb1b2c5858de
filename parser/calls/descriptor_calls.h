/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What system calls do to a process's file descriptors: resources of the kind "fd", held in the
 * heap of their process as all are (resource_calls.h). What a call closes is taken at its entry,
 * because another thread may be given the number before its return is seen; what it opens is there
 * at its return.
 */
#ifndef LEAKTOOLS_PARSER_DESCRIPTOR_CALLS_H
#define LEAKTOOLS_PARSER_DESCRIPTOR_CALLS_H

#include "parser/calls/heap_sink.h"

/*
 * Takes an end of one of the system calls of SYSCALL_DESCRIPTORS. @heap is that of the thread's
 * process. Returns 0 or -ENOMEM.
 */
int descriptor_calls_handle(struct heap_sink *sink, struct thread *thread, struct heap *heap,
			    const struct perf_sample *sample, uint32_t stack_id);

#endif
