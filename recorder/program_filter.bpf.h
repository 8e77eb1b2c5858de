/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The filter by size: which calls are recorded. */
#ifndef LEAKTOOLS_RECORDER_PROGRAM_FILTER_BPF_H
#define LEAKTOOLS_RECORDER_PROGRAM_FILTER_BPF_H

#include "program_samples.bpf.h"

/* Only blocks of these sizes, in bytes as asked for; and what glibc's size words are then. */
const volatile bool has_filter = false;
const volatile unsigned long long filter_min = 0, filter_max = 0;
const volatile unsigned long long size_word_min = 0, size_word_max = 0;

/* For allocators without a size word: the blocks that were recorded. */
struct held_key {
	unsigned long long tgid, block;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__type(key, struct held_key);
	__type(value, unsigned char);
} held_blocks SEC(".maps");

/* True if the block's size word is in the class: glibc's chunk, flags aside (malloc/malloc.c). */
ALWAYS_INLINE bool size_word_matches(unsigned long long block)
{
	unsigned long long word;

	if (!block || bpf_probe_read_user(&word, sizeof(word), (void *)(block - 8)))
		return false;
	word &= ~7ULL;
	return word >= size_word_min && word <= size_word_max;
}

static struct held_key held_key(unsigned long long block)
{
	return (struct held_key){bpf_get_current_pid_tgid() >> 32, block};
}

ALWAYS_INLINE bool block_matches(const struct program_site *site, unsigned long long block)
{
	struct held_key key = held_key(block);

	if (site->has_size_word)
		return size_word_matches(block);
	return bpf_map_delete_elem(&held_blocks, &key) == 0;
}

/* A block of an allocator without size words, whose release is to be recorded, too. */
ALWAYS_INLINE void note_block(const struct program_site *site, unsigned long long block)
{
	struct held_key key = held_key(block);
	unsigned char one = 1;

	if (has_filter && !site->has_size_word && block)
		bpf_map_update_elem(&held_blocks, &key, &one, BPF_ANY);
}

ALWAYS_INLINE unsigned long long argument(const unsigned long long *args, int index)
{
	return index == 0 ? args[0] : index == 1 ? args[1] : args[2];
}

/* What the call asks for; a product that overflows is as good as none: such a call fails. */
ALWAYS_INLINE unsigned long long wanted_bytes(const struct program_site *site,
					      const unsigned long long *args)
{
	unsigned long long size = argument(args, site->size_arg);

	return site->count_arg < 0 ? size : size * argument(args, site->count_arg);
}

ALWAYS_INLINE bool entry_matches(const struct program_site *site, const unsigned long long *args)
{
	unsigned long long size;

	if (!has_filter)
		return true;
	if (site->kind == PROGRAM_RELEASE)
		return block_matches(site, argument(args, site->block_arg));
	if (site->size_arg < 0)
		return true;
	size = wanted_bytes(site, args);
	if (size >= filter_min && size <= filter_max)
		return true;
	/* realloc() releases a block, too; posix_memalign()'s is no block yet. */
	return site->kind == PROGRAM_FUNCTION && site->block_arg >= 0 &&
	       block_matches(site, argument(args, site->block_arg));
}

#endif
