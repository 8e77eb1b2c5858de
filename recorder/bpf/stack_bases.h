/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where the stacks begin that were unwound of late: what unwinding has found out, and from which
 * the recording programs choose how much of a stack to dump (stack_bases.bpf.h).
 *
 * A stack is known by its process and by which 64 KiB of the address space its pointer is in. So
 * several stacks of a thread (signals', coroutines') are told apart, and a deep one is found out
 * anew every 64 KiB. Entries are hints: a wrong one costs bytes, or one dump that is too short.
 */
#ifndef LEAKTOOLS_RECORDER_STACK_BASES_H
#define LEAKTOOLS_RECORDER_STACK_BASES_H

#define STACK_BASES_BITS  14
#define STACK_TOPS	  (1 << STACK_BASES_BITS)
#define STACK_BASE_BITS	  48 /* of an address; the rest of an entry tells whose it is */
#define STACK_REGION_BITS 16

/* Of the stack of process @tgid that @sp points into: the entry's index in the high bits. */
static inline unsigned long long stack_base_hash(unsigned int tgid, unsigned long long sp)
{
	return ((sp >> STACK_REGION_BITS) + tgid * 0x9e3779b97f4a7c15ULL) * 0xff51afd7ed558ccdULL;
}

static inline unsigned int stack_base_index(unsigned long long hash)
{
	return (unsigned int)(hash >> (64 - STACK_BASES_BITS));
}

/* The entry for @top, below 2^48. */
static inline unsigned long long stack_base_entry(unsigned long long hash, unsigned long long top)
{
	return (hash >> STACK_BASES_BITS) << STACK_BASE_BITS | top;
}

/* The top that @entry tells; 0: of this stack it tells nothing. */
static inline unsigned long long stack_base_of(unsigned long long hash, unsigned long long entry)
{
	unsigned long long top = entry & ((1ULL << STACK_BASE_BITS) - 1);

	return entry == stack_base_entry(hash, top) ? top : 0;
}

#endif
