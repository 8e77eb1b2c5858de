/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where a process keeps the pointers by which it finds its blocks: registers, stacks, data of
 * modules, thread-local variables, other memory, and what the kernel keeps for it.
 */
#ifndef LEAKTOOLS_SCAN_ROOTS_H
#define LEAKTOOLS_SCAN_ROOTS_H

#include "scan/heaps/heap.h"
#include "scan/roots/thread_stacks.h"

enum root_kind {
	ROOT_REGISTER, /* general registers of a thread */
	ROOT_VECTOR,   /* its floating-point and vector registers */
	ROOT_STACK,
	ROOT_RED_ZONE, /* below the stack pointer: a function that calls no other may use it */
	ROOT_DTV,      /* a thread's pointer to the table of its thread-local variables */
	ROOT_THREAD,   /* glibc's data of a thread that has ended and is not joined yet */
	ROOT_DATA,     /* a mapping: data of a module, memory of no file, shared memory */
	ROOT_CODE,     /* code that the process generated: addresses at any byte */
	ROOT_KERNEL,   /* epoll's data, timers' values */
};

/* A piece of memory that is looked through for pointers. */
struct root_range {
	enum root_kind kind;
	uint64_t address;     /* in the process; of registers and kernel pointers: 0 */
	const uint8_t *bytes; /* here */
	uint64_t size_bytes;
	uint64_t first_slot; /* the number of the first word, among all ranges' words */
	size_t owner;	     /* the thread, or the region */
	/* A thread inside malloc() or free() may hold no more than the chunk's address. */
	bool has_chunks;
};

struct roots {
	const struct snapshot *snapshot;
	struct root_range *ranges;
	size_t nr;
	uint64_t nr_slots;
	struct thread_stacks stacks;
	uint64_t *values; /* of registers, DTVs and kernel pointers, for ranges to point to */
};

/*
 * Takes over what thread_stacks_find() has found. Returns 0 or -ENOMEM. Release with roots_deinit()
 * in either case.
 */
int roots_init(struct roots *ret, const struct heap *heap, struct thread_stacks *stacks);
void roots_deinit(struct roots *roots);

/* The range of the word with that number. */
const struct root_range *roots_range_of(const struct roots *roots, uint64_t slot);

#endif
