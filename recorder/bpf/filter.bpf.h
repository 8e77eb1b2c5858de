/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Filters calls by size. An allocation is recorded by its requested size, a release if the block
 * was recorded. So a recorded block has its release recorded, too, whatever realloc() does in
 * between.
 */
#ifndef LEAKTOOLS_RECORDER_FILTER_BPF_H
#define LEAKTOOLS_RECORDER_FILTER_BPF_H

#include "recorder/bpf/samples.bpf.h"
#include "recorder/bpf/task_state.bpf.h"

#define SEEN_BITS (1U << 22) /* a power of two */
#define ENOENT	  2	     /* uapi/asm-generic/errno-base.h */

/* malloc/malloc.c in glibc: IS_MMAPPED */
#define CHUNK_IS_MMAPPED 2ULL
#define CHUNK_FLAGS	 7ULL

/* The requested sizes to record, in bytes, and the size words that glibc has for them. */
const volatile bool has_filter = false;

/* All sites are calls (calls.bpf.h): the blocks of some, and nothing else, are recorded. */
const volatile bool at_calls = false;
const volatile unsigned long long filter_min = 0, filter_max = 0;
const volatile unsigned long long size_word_min = 0, size_word_max = 0;

struct held_key {
	unsigned long long tgid, block;
};

enum block_state { BLOCK_RELEASED, BLOCK_HELD };

/* The recorded blocks; in forked children also the released ones. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__type(key, struct held_key);
	__type(value, unsigned char);
} held_blocks SEC(".maps");

/*
 * One bit for each hash of an address. It is set if a block there was ever recorded. Most releases
 * find it clear, and need neither a lookup in the table nor a read of the user's memory.
 */
unsigned long long seen[SEEN_BITS / 64];

ALWAYS_INLINE unsigned int seen_bit(unsigned long long block)
{
	return (block >> 4) * 0x9e3779b97f4a7c15ULL >> 42;
}

/* True if the size word before the block matches: glibc's chunk size (malloc/malloc.c). */
ALWAYS_INLINE bool size_word_matches(unsigned long long block)
{
	unsigned long long word;

	if (bpf_probe_read_user(&word, sizeof(word), (void *)(block - 8)))
		return false;
	/* A chunk that glibc mapped may be larger than requested, by its alignment. */
	if (word & CHUNK_IS_MMAPPED)
		return word >= size_word_min;
	word &= ~CHUNK_FLAGS;
	return word >= size_word_min && word <= size_word_max;
}

static struct held_key held_key(unsigned long long block)
{
	return (struct held_key){bpf_get_current_pid_tgid() >> 32, block};
}

/* Notes a recorded block. Returns false if there is no room: its release would be missed. */
__attribute__((noinline)) bool note_block(unsigned long long block)
{
	struct held_key key = held_key(block);
	unsigned int bit = seen_bit(block) & (SEEN_BITS - 1);
	unsigned char state = BLOCK_HELD;

	if (bpf_map_update_elem(&held_blocks, &key, &state, BPF_ANY))
		return false;
	__sync_fetch_and_or(&seen[bit / 64], 1ULL << (bit & 63));
	return true;
}

/*
 * Forgets a block that a forked child may have inherited. Its size word decides, but only once (at
 * calls any block may be one that was recorded):
 * after that, a block there was allocated by the child, and is in the table if it was recorded.
 */
ALWAYS_INLINE bool forget_inherited(struct held_key *key)
{
	unsigned char *state = bpf_map_lookup_elem(&held_blocks, key), released = BLOCK_RELEASED;
	bool matches = state ? *state == BLOCK_HELD : at_calls || size_word_matches(key->block);

	if (matches)
		bpf_map_update_elem(&held_blocks, key, &released, BPF_ANY);
	return matches;
}

/* Forgets a block. Returns true if it was recorded, perhaps by the parent (@is_inherited). */
__attribute__((noinline)) bool forget_block(unsigned long long block, bool is_inherited)
{
	unsigned int bit = seen_bit(block) & (SEEN_BITS - 1);
	struct held_key key = held_key(block);
	int err;

	if (!(seen[bit / 64] >> (bit & 63) & 1))
		return false;
	if (is_inherited)
		return forget_inherited(&key);
	/* Before Linux 6.4 only the lower half is defined (d7ba4cc900bf). */
	err = (int)bpf_map_delete_elem(&held_blocks, &key);
	/* The table was busy: it is not known whether the block was recorded. */
	if (err && err != -ENOENT)
		count_lost();
	return err == 0;
}

ALWAYS_INLINE unsigned long long argument(const unsigned long long *args, int index)
{
	return index == 0 ? args[0] : index == 1 ? args[1] : args[2];
}

/* The requested size. A product that overflows does not matter: such a call fails. */
ALWAYS_INLINE unsigned long long wanted_bytes(const struct bpf_site *site,
					      const unsigned long long *args)
{
	unsigned long long size = argument(args, site->size_arg);

	return site->count_arg < 0 ? size : size * argument(args, site->count_arg);
}

/* True if the call has to be recorded. *@ret_old is the recorded block it releases, or 0. */
ALWAYS_INLINE bool entry_matches(const struct bpf_site *site, const unsigned long long *args,
				 bool is_followed, unsigned long long *ret_old)
{
	bool is_inherited = is_followed && (site->has_size_word || at_calls), takes = false;
	unsigned long long size, block;

	*ret_old = 0;
	if (!has_filter)
		return true;
	/* The argument of posix_memalign() points to no block yet. */
	if (site->block_arg >= 0 && site->kind != BPF_SITE_INT_FUNCTION) {
		block = argument(args, site->block_arg);
		takes = block && forget_block(block, is_inherited);
		if (takes)
			*ret_old = block;
	}
	if (takes || site->size_arg < 0)
		return takes;
	size = wanted_bytes(site, args);
	return size >= filter_min && size <= filter_max;
}

#endif
