/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The filter by size: which calls are recorded. Allocations go by the size they ask for, releases
 * by whether the block was recorded: what is recorded has its release recorded, too, whatever
 * realloc() does to it in between.
 */
#ifndef LEAKTOOLS_RECORDER_FILTER_BPF_H
#define LEAKTOOLS_RECORDER_FILTER_BPF_H

#include "recorder/bpf/samples.bpf.h"
#include "recorder/bpf/task_state.bpf.h"

#define SEEN_BITS (1U << 22) /* a power of two */
#define ENOENT	  2	     /* uapi/asm-generic/errno-base.h */

/* glibc's, malloc/malloc.c. */
#define CHUNK_IS_MMAPPED 2ULL
#define CHUNK_FLAGS	 7ULL

/* Only blocks of these sizes, in bytes as asked for; and what glibc's size words are then. */
const volatile bool has_filter = false;
const volatile unsigned long long filter_min = 0, filter_max = 0;
const volatile unsigned long long size_word_min = 0, size_word_max = 0;

struct held_key {
	unsigned long long tgid, block;
};

enum block_state { BLOCK_RELEASED, BLOCK_HELD };

/* The blocks that were recorded; of forked children also those that they have released. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__type(key, struct held_key);
	__type(value, unsigned char);
} held_blocks SEC(".maps");

/*
 * A bit for each address, by its hash: set if a block there has ever been recorded. It spares most
 * releases all that costs: a look into the table, or at the user's memory.
 */
unsigned long long seen[SEEN_BITS / 64];

ALWAYS_INLINE unsigned int seen_bit(unsigned long long block)
{
	return (block >> 4) * 0x9e3779b97f4a7c15ULL >> 42;
}

/* True if the block's size word is in the class: glibc's chunk, flags aside (malloc/malloc.c). */
ALWAYS_INLINE bool size_word_matches(unsigned long long block)
{
	unsigned long long word;

	if (bpf_probe_read_user(&word, sizeof(word), (void *)(block - 8)))
		return false;
	/* What malloc maps may be larger by any alignment. */
	if (word & CHUNK_IS_MMAPPED)
		return word >= size_word_min;
	word &= ~CHUNK_FLAGS;
	return word >= size_word_min && word <= size_word_max;
}

static struct held_key held_key(unsigned long long block)
{
	return (struct held_key){bpf_get_current_pid_tgid() >> 32, block};
}

/* A block that was recorded. Returns false if that cannot be noted: its release would be missed. */
static __attribute__((noinline)) bool note_block(unsigned long long block)
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
 * In a forked child: a block that it may have inherited is told by its size word, but once. After
 * that, what is there has been allocated since, and is known if it was recorded.
 */
ALWAYS_INLINE bool take_inherited(struct held_key *key)
{
	unsigned char *state = bpf_map_lookup_elem(&held_blocks, key), released = BLOCK_RELEASED;
	bool matches = state ? *state == BLOCK_HELD : size_word_matches(key->block);

	if (matches)
		bpf_map_update_elem(&held_blocks, key, &released, BPF_ANY);
	return matches;
}

/* True if @block is one that was recorded, which it then is no more. A child has inherited some. */
static __attribute__((noinline)) bool take_block(unsigned long long block, bool is_inherited)
{
	unsigned int bit = seen_bit(block) & (SEEN_BITS - 1);
	struct held_key key = held_key(block);
	long err;

	if (!(seen[bit / 64] >> (bit & 63) & 1))
		return false;
	if (is_inherited)
		return take_inherited(&key);
	err = bpf_map_delete_elem(&held_blocks, &key);
	/* The table was busy: whether the block was recorded is not known. */
	if (err && err != -ENOENT)
		count_lost();
	return err == 0;
}

ALWAYS_INLINE unsigned long long argument(const unsigned long long *args, int index)
{
	return index == 0 ? args[0] : index == 1 ? args[1] : args[2];
}

/* What the call asks for; a product that overflows is as good as none: such a call fails. */
ALWAYS_INLINE unsigned long long wanted_bytes(const struct bpf_site *site,
					      const unsigned long long *args)
{
	unsigned long long size = argument(args, site->size_arg);

	return site->count_arg < 0 ? size : size * argument(args, site->count_arg);
}

/* True if the call, or the release, is to be recorded. *@ret_old is the block it takes, or 0. */
ALWAYS_INLINE bool entry_matches(const struct bpf_site *site, const unsigned long long *args,
				 bool is_followed, unsigned long long *ret_old)
{
	bool is_inherited = is_followed && site->has_size_word, takes = false;
	unsigned long long size, block;

	*ret_old = 0;
	if (!has_filter)
		return true;
	/* What posix_memalign() points to is no block yet. */
	if (site->block_arg >= 0 && site->kind != BPF_SITE_INT_FUNCTION) {
		block = argument(args, site->block_arg);
		takes = block && take_block(block, is_inherited);
		if (takes)
			*ret_old = block;
	}
	if (takes || site->size_arg < 0)
		return takes;
	size = wanted_bytes(site, args);
	return size >= filter_min && size <= filter_max;
}

#endif
