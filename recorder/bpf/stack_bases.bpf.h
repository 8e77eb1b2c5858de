/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How much of a stack is worth dumping: up to where it begins. The recorder, which unwinds, tells
 * where that is (stack_bases.h); of a stack that is new to it, it is guessed.
 */
#ifndef LEAKTOOLS_RECORDER_STACK_BASES_BPF_H
#define LEAKTOOLS_RECORDER_STACK_BASES_BPF_H

#include "recorder/bpf/registers.bpf.h"
#include "recorder/bpf/stack_bases.h"

/* Above the stack's begin: what an unwinder wants to see of the program's arguments. */
#define STACK_SLACK_BYTES 128

unsigned long long stack_bases[STACK_BASES];

/*
 * The bytes from @sp to the program's arguments, where the first thread's stack begins, or to what
 * the thread pointer points to, which glibc and musl place at the top of a thread's stack. More
 * than can be dumped where neither is near: a coroutine's stack, say, is found to be smaller by its
 * first dump.
 */
ALWAYS_INLINE unsigned long long guess_stack_bytes(unsigned long long sp)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct mm_struct *mm = task->mm;
	unsigned long long to_start = mm ? mm->start_stack - sp : ~0ULL;
	unsigned long long to_thread = thread_pointer(task) - sp;
	unsigned long long bytes = to_start < to_thread ? to_start : to_thread;

	return bytes < ~0U ? bytes + STACK_SLACK_BYTES : bytes;
}

/* The bytes of the stack from @sp on that unwinding is going to need. */
ALWAYS_INLINE unsigned long long stack_bytes_needed(unsigned int tgid, unsigned long long sp)
{
	unsigned long long hash = stack_base_hash(tgid, sp);
	unsigned long long top =
		stack_base_of(hash, stack_bases[stack_base_index(hash) & (STACK_BASES - 1)]);

	return top > sp ? top - sp : guess_stack_bytes(sp);
}

#endif
