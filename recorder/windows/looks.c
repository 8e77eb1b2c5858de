/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/windows/looks.h"

#include "common/clock.h"
#include "common/hash.h"
#include "common/schema/look_state.h"
#include "recorder/output/own_samples.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#define MAX_CANDIDATES 16384
#define CONTENT_WORDS  16
#define FIRST_NS       1000000000ULL
#define MAX_DOUBLINGS  12

#define NO_STATE       ((enum look_state)0)

/* malloc/malloc.c in glibc: flags in a chunk's size word, which is before its block. */
#define CHUNK_PREV_INUSE 1ULL
#define CHUNK_IS_MMAPPED 2ULL
#define CHUNK_FLAGS	 7ULL

struct watched_block {
	pid_t pid;
	uint64_t address, size_bytes, allocated_ns;
	uint64_t next_ns;
	uint64_t size_word; /* of its chunk; 0: it has none that is like glibc's */
	uint64_t content;   /* a hash */
	unsigned int nr_looks;
};

struct candidate {
	struct held_block block;
	pid_t pid;
	uint64_t order;
	size_t rank; /* in its site */
};

struct looks {
	struct watched_block blocks[LOOKS_MAX];
	size_t nr;
	uint64_t random;
	struct candidate candidates[MAX_CANDIDATES];
};

static uint64_t next_random(struct looks *looks)
{
	looks->random += 0x9e3779b97f4a7c15;
	return hash_mix(looks->random, 0xd6e8feb86659fd93);
}

int looks_create(uint64_t seed, struct looks **ret)
{
	*ret = calloc(1, sizeof(**ret));
	if (!*ret)
		return -ENOMEM;
	(*ret)->random = seed;
	return 0;
}

void looks_destroy(struct looks *looks)
{
	free(looks);
}

size_t looks_nr(const struct looks *looks)
{
	return looks->nr;
}

/* --- the choice --- */

static int by_site(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->block.site != y->block.site)
		return x->block.site < y->block.site ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

static int by_rank(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

/* Lists the blocks of the window; of very many, a random part. Returns how many it lists. */
static size_t list_candidates(struct looks *looks, const struct held_blocks *held,
			      const struct target_table *table, uint64_t from_ns)
{
	const struct held_block *block;
	size_t nr_seen = 0;

	for (size_t i = 0; i < TARGET_TABLE_SIZE; i++) {
		unsigned long long tgid = table->targets[i].tgid;
		size_t at = 0;

		while (target_is_process(tgid) &&
		       (block = held_blocks_next(held, (pid_t)tgid, &at))) {
			size_t to = nr_seen;

			if (block->time_ns < from_ns)
				continue;
			if (nr_seen++ >= MAX_CANDIDATES)
				to = next_random(looks) % nr_seen;
			if (to < MAX_CANDIDATES)
				looks->candidates[to] = (struct candidate){*block, (pid_t)tgid,
									   next_random(looks), 0};
		}
	}
	return nr_seen < MAX_CANDIDATES ? nr_seen : MAX_CANDIDATES;
}

static void watch(struct looks *looks, const struct candidate *candidate)
{
	size_t to = looks->nr < LOOKS_MAX ? looks->nr++ : next_random(looks) % LOOKS_MAX;

	looks->blocks[to] = (struct watched_block){
		.pid = candidate->pid,
		.address = candidate->block.address,
		.size_bytes = candidate->block.size_bytes,
		.allocated_ns = candidate->block.time_ns,
	};
}

void looks_choose(struct looks *looks, const struct held_blocks *held,
		  const struct target_table *table, uint64_t from_ns)
{
	struct candidate *all = looks->candidates;
	size_t nr = list_candidates(looks, held, table, from_ns);

	qsort(all, nr, sizeof(*all), by_site);
	for (size_t i = 1; i < nr; i++)
		if (all[i].block.site == all[i - 1].block.site)
			all[i].rank = all[i - 1].rank + 1;
	qsort(all, nr, sizeof(*all), by_rank);
	for (size_t i = 0; i < nr && i < LOOKS_NEW_MAX; i++)
		watch(looks, &all[i]);
}

/* --- a look --- */

/* What is at and around a block. */
struct view {
	uint64_t size_word;
	uint64_t content[CONTENT_WORDS];
	uint64_t next_size_word; /* of the chunk after it */
};

static uint64_t chunk_bytes(uint64_t size_word)
{
	return size_word & ~CHUNK_FLAGS;
}

static size_t content_bytes(const struct watched_block *block)
{
	size_t most = sizeof(uint64_t[CONTENT_WORDS]);

	return block->size_bytes < most ? (size_t)block->size_bytes : most;
}

/* Reads @bytes; false: not all of them can be read. */
static bool read_at(pid_t pid, uint64_t address, void *to, size_t bytes)
{
	const struct iovec local = {to, bytes};
	/* NOLINTNEXTLINE(performance-no-int-to-ptr): of another process */
	const struct iovec remote = {(void *)(uintptr_t)address, bytes};

	errno = 0;
	return bytes == 0 || process_vm_readv(pid, &local, 1, &remote, 1, 0) == (ssize_t)bytes;
}

/*
 * True if the size word may be that of a chunk which glibc has given for the block, with what is
 * added for alignment or left over from a larger one.
 */
static bool is_chunk_of(uint64_t size_word, const struct watched_block *block)
{
	uint64_t bytes = chunk_bytes(size_word);

	return !(size_word & CHUNK_IS_MMAPPED) && bytes >= block->size_bytes + 8 &&
	       bytes <= block->size_bytes + 8 + 16 + 32 && bytes % 16 == 0;
}

/* Reads the block, and its chunk if that is glibc's. Returns false if it is unmapped. */
static bool view_block(const struct watched_block *block, struct view *ret)
{
	*ret = (struct view){0};
	if (!read_at(block->pid, block->address, ret->content, content_bytes(block)))
		return false;
	if (block->address % 16 || !read_at(block->pid, block->address - 8, &ret->size_word, 8))
		ret->size_word = 0;
	if (!is_chunk_of(ret->size_word, block))
		return true;
	/* The address follows from the block's size, which is known, within 48 bytes. */
	if (!read_at(block->pid, block->address - 8 + chunk_bytes(ret->size_word),
		     &ret->next_size_word, 8))
		ret->next_size_word = CHUNK_PREV_INUSE;
	return true;
}

static bool target_is_known(const struct target_table *table, pid_t pid)
{
	for (size_t i = 0; i < TARGET_TABLE_SIZE; i++)
		if (table->targets[i].tgid == (unsigned long long)pid)
			return true;
	return false;
}

/* NO_STATE: the process is gone, or cannot be read. */
static enum look_state look_at(struct watched_block *block)
{
	bool is_first = block->nr_looks == 0, has_chunk;
	uint64_t before = block->content;
	struct view view;

	if (!view_block(block, &view))
		return errno == EFAULT ? LOOK_GONE : NO_STATE;
	has_chunk = is_chunk_of(view.size_word, block);
	if (is_first)
		block->size_word = has_chunk ? view.size_word | CHUNK_PREV_INUSE : 0;
	else if (block->size_word && block->size_word != (view.size_word | CHUNK_PREV_INUSE))
		return LOOK_GONE;
	if (has_chunk && block->size_word && !(view.next_size_word & CHUNK_PREV_INUSE))
		return LOOK_GONE;
	block->content = hash_words(view.content, CONTENT_WORDS, 0);
	return is_first || block->content != before ? LOOK_TOUCHED : LOOK_UNTOUCHED;
}

/* A second after the first look, then two, and so on, give or take half. */
static uint64_t next_look_ns(struct looks *looks, unsigned int nr_looks, uint64_t now_ns)
{
	unsigned int doublings = nr_looks < MAX_DOUBLINGS ? nr_looks : MAX_DOUBLINGS;
	uint64_t ns = FIRST_NS << doublings;

	return now_ns + ns / 2 + next_random(looks) % ns;
}

static int write_look(const struct watched_block *block, enum look_state state, uint64_t now_ns,
		      struct perf_writer *writer)
{
	const uint64_t values[LOOK_NR_VALUES] = {
		[LOOK_ADDRESS] = block->address,
		[LOOK_ALLOCATED] = block->allocated_ns,
	};

	return own_samples_write(writer, OWN_LOOK, block->pid, now_ns, state, values);
}

int looks_take(struct looks *looks, const struct target_table *table, struct perf_writer *writer,
	       bool at_all)
{
	uint64_t now_ns = clock_now_ns();
	size_t nr_left = 0;
	int err = 0;

	for (size_t i = 0; i < looks->nr; i++) {
		struct watched_block block = looks->blocks[i];
		bool is_due = at_all || now_ns >= block.next_ns;
		enum look_state state = LOOK_TOUCHED;

		if (is_due) {
			state = target_is_known(table, block.pid) ? look_at(&block) : NO_STATE;
			if (state && !err)
				err = write_look(&block, state, clock_now_ns(), writer);
			block.next_ns = next_look_ns(looks, block.nr_looks++, now_ns);
		}
		if (state && state != LOOK_GONE)
			looks->blocks[nr_left++] = block;
	}
	looks->nr = nr_left;
	return err;
}
