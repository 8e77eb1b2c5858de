/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How much of a stack to dump: up to its base. The recorder finds the base by unwinding
 * (stack_bases.h). For a stack that it has not unwound yet, the base is guessed.
 */
#ifndef LEAKTOOLS_RECORDER_STACK_BASES_BPF_H
#define LEAKTOOLS_RECORDER_STACK_BASES_BPF_H

#include "recorder/bpf/registers.bpf.h"
#include "recorder/bpf/stack_bases.h"

/* Above the base: the part of the program's arguments that an unwinder reads. */
#define STACK_SLACK_BYTES 128

unsigned long long stack_bases[STACK_BASES];

/*
 * The bytes from @sp to the program's arguments, the base of the first thread's stack, or to the
 * thread pointer's target, which glibc and musl place at the base of a thread's stack. If neither
 * is near, as for a coroutine's stack: more than a dump can hold. The first dump then shows the
 * base.
 */
ALWAYS_INLINE unsigned long long guess_stack_bytes(unsigned long long sp)
{
	const struct task_struct *task = task_to_read();
	struct mm_struct *mm = task->mm;
	unsigned long long to_start = mm ? mm->start_stack - sp : ~0ULL;
	unsigned long long to_thread = thread_pointer(task) - sp;
	unsigned long long bytes = to_start < to_thread ? to_start : to_thread;

	return bytes < ~0U ? bytes + STACK_SLACK_BYTES : bytes;
}

/* The bytes of the stack from @sp on that unwinding needs. */
ALWAYS_INLINE unsigned long long stack_bytes_needed(unsigned int tgid, unsigned long long sp)
{
	unsigned long long hash = stack_base_hash(tgid, sp);
	unsigned long long top =
		stack_base_of(hash, stack_bases[stack_base_index(hash) & (STACK_BASES - 1)]);

	return top > sp ? top - sp : guess_stack_bytes(sp);
}

#endif
