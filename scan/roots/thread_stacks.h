/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which part of the memory is a stack, and which part of a stack is in use. Below a stack pointer,
 * and on stacks of threads that have ended and that glibc keeps for the next ones, old pointers lie
 * around.
 */
#ifndef LEAKTOOLS_SCAN_THREAD_STACKS_H
#define LEAKTOOLS_SCAN_THREAD_STACKS_H

#include "scan/snapshot/snapshot.h"

/* A stack, or what is known of one: [start, end). */
struct thread_stack {
	uint64_t start, end;
	uint64_t sp;	     /* in use from here; @end: nothing is */
	size_t thread;	     /* in the snapshot; SIZE_MAX: the thread has ended */
	uint64_t control;    /* glibc's struct pthread at the end of the stack; 0: not there */
	bool waits_for_join; /* the thread has ended, its data is still in use */
};

struct thread_stacks {
	struct thread_stack *stacks; /* by start; they do not overlap */
	size_t nr;
};

/* Returns 0 or -ENOMEM. Release with thread_stacks_deinit() in either case. */
int thread_stacks_find(struct thread_stacks *ret, const struct snapshot *snapshot);
void thread_stacks_deinit(struct thread_stacks *stacks);

#endif
