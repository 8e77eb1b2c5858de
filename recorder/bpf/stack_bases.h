/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The bases of recently unwound stacks. The unwinder fills the table, and the recording programs
 * choose by it how much of a stack to dump (stack_bases.bpf.h).
 *
 * The key is the process and the 64 KiB of the address space that the stack pointer is in. So the
 * stacks of a thread are distinct (signals, coroutines), and a deep stack has an entry for every
 * 64 KiB. Entries are hints: a wrong one costs bytes, or one dump that is too short.
 */
#ifndef LEAKTOOLS_RECORDER_STACK_BASES_H
#define LEAKTOOLS_RECORDER_STACK_BASES_H

#define STACK_BASES_BITS  14
#define STACK_BASES	  (1 << STACK_BASES_BITS)
#define STACK_BASE_BITS	  48 /* of an address; the rest of an entry is part of the hash */
#define STACK_REGION_BITS 16

/* The hash of the stack of process @tgid that @sp points into; its high bits are the index. */
static inline unsigned long long stack_base_hash(unsigned int tgid, unsigned long long sp)
{
	return ((sp >> STACK_REGION_BITS) + tgid * 0x9e3779b97f4a7c15ULL) * 0xff51afd7ed558ccdULL;
}

static inline unsigned int stack_base_index(unsigned long long hash)
{
	return (unsigned int)(hash >> (64 - STACK_BASES_BITS));
}

/* The entry for @base, below 2^48. */
static inline unsigned long long stack_base_entry(unsigned long long hash, unsigned long long base)
{
	return (hash >> STACK_BASES_BITS) << STACK_BASE_BITS | base;
}

/* The base in @entry; 0 if the entry is of another stack. */
static inline unsigned long long stack_base_of(unsigned long long hash, unsigned long long entry)
{
	unsigned long long base = entry & ((1ULL << STACK_BASE_BITS) - 1);

	return entry == stack_base_entry(hash, base) ? base : 0;
}

#endif
