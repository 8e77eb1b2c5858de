/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Applies system calls to a process's file descriptors: resources of the kind "fd", held in the
 * heap of the process (resource_calls.h). A call closes descriptors at its entry, because another
 * thread may get the number before the exit is seen. It opens descriptors at its exit.
 */
#ifndef LEAKTOOLS_PARSER_DESCRIPTOR_CALLS_H
#define LEAKTOOLS_PARSER_DESCRIPTOR_CALLS_H

#include "parser/calls/heap_sink.h"

/*
 * Handles the entry or exit of a system call of SYSCALL_DESCRIPTORS. @heap is that of the thread's
 * process. Returns 0 or -ENOMEM.
 */
int descriptor_calls_handle(struct heap_sink *sink, struct thread *thread, struct heap *heap,
			    const struct perf_sample *sample, uint32_t stack_id);

#endif
