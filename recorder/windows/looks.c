/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/windows/looks.h"

#include "common/clock.h"
#include "common/diag.h"
#include "common/hash.h"
#include "common/schema/look_state.h"
#include "recorder/held/held_stacks.h"
#include "recorder/output/own_samples.h"
#include "recorder/processes/memory_reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_CANDIDATES 16384
#define CONTENT_WORDS  16
#define FIRST_NS       1000000000ULL
#define MAX_DOUBLINGS  12
#define LASTING_LOOKS  3 /* about three seconds */

/* How long this thread waits for the one that reads: as a rule, the last time, until it says so. */
#define BRIEF_NS 20000000ULL
#define LAST_NS	 500000000ULL
#define STUCK_NS 5000000000ULL

/*
 * A look has the time of its writing, as readers want order (ring_reader.h). What was read so long
 * before may not be true any more.
 */
#define STALE_NS (2 * STUCK_NS)

#define NO_STATE ((enum look_state)0)

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
	struct looks_stack stack;
};

struct candidate {
	struct held_block block;
	pid_t pid;
	uint64_t order, site;
	size_t rank; /* in its site */
};

struct looks {
	struct watched_block blocks[LOOKS_MAX];
	size_t nr;
	uint64_t random;
	struct candidate candidates[MAX_CANDIDATES];
	struct read_thread *thread; /* NULL: not yet */
	struct look_batch *batch;   /* what it reads; NULL: nothing */
	bool has_warned;	    /* it takes too long */
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
	if (looks && read_thread_destroy(looks->thread))
		free(looks->batch);
	free(looks);
}

/* --- the choice --- */

/* A hash of the stack's innermost frames; without stacks, the site is one. */
static uint64_t site_of(const struct held_blocks *held, const struct held_block *block)
{
	const struct held_stacks *stacks = held_blocks_stacks(held);
	struct held_stack stack;

	if (!stacks || !block->site)
		return block->site;
	stack = held_stacks_get(stacks, (uint32_t)block->site);
	return hash_words(stack.chain,
			  stack.nr < HELD_SITE_FRAMES + 2 ? stack.nr : HELD_SITE_FRAMES + 2, 0);
}

static int by_site(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->site != y->site)
		return x->site < y->site ? -1 : 1;
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
			      struct target_table *table, uint64_t from_ns)
{
	const struct held_block *block;
	size_t nr_seen = 0;

	for (struct target *target = NULL; (target = target_table_next(table, target));) {
		unsigned long long tgid = target->tgid;
		size_t at = 0;

		while (target_is_process(tgid) &&
		       (block = held_blocks_next(held, (pid_t)tgid, &at))) {
			size_t to = nr_seen;

			if (block->time_ns < from_ns)
				continue;
			if (nr_seen++ >= MAX_CANDIDATES)
				to = next_random(looks) % nr_seen;
			if (to < MAX_CANDIDATES)
				looks->candidates[to] =
					(struct candidate){*block, (pid_t)tgid, next_random(looks),
							   site_of(held, block), 0};
		}
	}
	return nr_seen < MAX_CANDIDATES ? nr_seen : MAX_CANDIDATES;
}

/* The return addresses of the stack that @block was allocated with. */
static struct looks_stack stack_of(const struct held_blocks *held, pid_t pid,
				   const struct held_block *block)
{
	const struct held_stacks *stacks = held_blocks_stacks(held);
	struct held_stack stack = stacks && block->site
					  ? held_stacks_get(stacks, (uint32_t)block->site)
					  : (struct held_stack){0};
	struct looks_stack ret = {.pid = pid};

	/* The marker and the function that allocates come first. */
	for (size_t i = 2; i < stack.nr && ret.nr_frames < LOOKS_MAX_FRAMES; i++)
		ret.frames[ret.nr_frames++] = stack.chain[i];
	ret.hash = hash_words(ret.frames, ret.nr_frames, (uint64_t)pid);
	return ret;
}

static void watch(struct looks *looks, const struct held_blocks *held,
		  const struct candidate *candidate)
{
	size_t to = looks->nr < LOOKS_MAX ? looks->nr++ : next_random(looks) % LOOKS_MAX;

	looks->blocks[to] = (struct watched_block){
		.pid = candidate->pid,
		.address = candidate->block.address,
		.size_bytes = candidate->block.size_bytes,
		.allocated_ns = candidate->block.time_ns,
		.stack = stack_of(held, candidate->pid, &candidate->block),
	};
}

void looks_choose(struct looks *looks, const struct held_blocks *held, struct target_table *table,
		  uint64_t from_ns)
{
	struct candidate *all = looks->candidates;
	size_t nr = list_candidates(looks, held, table, from_ns);

	qsort(all, nr, sizeof(*all), by_site);
	for (size_t i = 1; i < nr; i++)
		if (all[i].site == all[i - 1].site)
			all[i].rank = all[i - 1].rank + 1;
	qsort(all, nr, sizeof(*all), by_rank);
	for (size_t i = 0; i < nr && i < LOOKS_NEW_MAX; i++)
		watch(looks, held, &all[i]);
}

static bool has_lasted(const struct watched_block *block)
{
	return block->nr_looks >= LASTING_LOOKS && block->stack.nr_frames;
}

bool looks_find_stack(const struct looks *looks,
		      bool (*is_known)(const void *context, const struct looks_stack *stack),
		      const void *context, struct looks_stack *ret)
{
	*ret = (struct looks_stack){0};
	for (size_t i = 0; i < looks->nr; i++) {
		const struct looks_stack *stack = &looks->blocks[i].stack;
		size_t nr = 0;

		if (!has_lasted(&looks->blocks[i]) || stack->hash == ret->hash)
			continue;
		for (size_t k = 0; k < looks->nr; k++)
			nr += looks->blocks[k].stack.hash == stack->hash &&
			      has_lasted(&looks->blocks[k]);
		if (nr <= ret->nr_blocks || is_known(context, stack))
			continue;
		*ret = *stack;
		ret->nr_blocks = nr;
	}
	return ret->nr_blocks;
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

/*
 * Reads @bytes. Returns 0; -EFAULT if not all are mapped; -EAGAIN if some are not in memory; or
 * another negative errno.
 */
static int read_at(const struct memory_reader *reader, uint64_t address, void *to, size_t bytes)
{
	const uint64_t page_bytes = (uint64_t)getpagesize();
	size_t nr = 0, left;
	ssize_t got;

	while (nr < bytes) {
		got = memory_reader_read(reader, address + nr, (char *)to + nr, bytes - nr);
		if (got < 0)
			return (int)got;
		nr += (size_t)got;
		if (got || nr == bytes)
			continue;
		switch (memory_reader_absence(reader, address + nr)) {
		case MEMORY_UNMAPPED:
			return -EFAULT;
		case MEMORY_ELSEWHERE:
			return -EAGAIN;
		case MEMORY_ZERO:
			break;
		}
		left = page_bytes - (address + nr) % page_bytes;
		left = left < bytes - nr ? left : bytes - nr;
		memset((char *)to + nr, 0, left);
		nr += left;
	}
	return 0;
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

/* Reads the block, and its chunk if that is glibc's. Returns as read_at(). */
static int view_block(const struct memory_reader *reader, const struct watched_block *block,
		      struct view *ret)
{
	int err = read_at(reader, block->address, ret->content, content_bytes(block));

	if (err)
		return err;
	if (block->address % 16 == 0)
		err = read_at(reader, block->address - 8, &ret->size_word, 8);
	if (err == -EFAULT)
		ret->size_word = 0;
	else if (err)
		return err;
	if (!is_chunk_of(ret->size_word, block))
		return 0;
	/* The address follows from the block's size, which is known, within 48 bytes. */
	err = read_at(reader, block->address - 8 + chunk_bytes(ret->size_word),
		      &ret->next_size_word, 8);
	if (err == -EFAULT)
		ret->next_size_word = CHUNK_PREV_INUSE;
	return err == -EFAULT ? 0 : err;
}

/* What the thread is to read, and has read. */
struct look {
	size_t nth; /* of looks->blocks */
	struct watched_block block;
	struct view view;
	int err;
};

struct look_batch {
	uint64_t begin_ns;
	pid_t pid; /* of the process that it reads */
	size_t nr;
	struct look looks[];
};

static void read_batch(void *argument)
{
	struct look_batch *batch = argument;
	struct memory_reader reader = {0};

	for (size_t i = 0; i < batch->nr; i++) {
		struct look *look = &batch->looks[i];

		__atomic_store_n(&batch->pid, look->block.pid, __ATOMIC_RELAXED);
		look->err = memory_reader_open(&reader, look->block.pid);
		if (!look->err)
			look->err = view_block(&reader, &look->block, &look->view);
	}
	memory_reader_close(&reader);
}

/* What a look has found. NO_STATE: the process is gone, or cannot be read. */
static enum look_state state_of(struct watched_block *block, const struct look *look)
{
	bool is_first = block->nr_looks == 0;
	bool has_chunk = is_chunk_of(look->view.size_word, block);
	uint64_t size_word = look->view.size_word | CHUNK_PREV_INUSE, before = block->content;

	if (look->err)
		return look->err == -EFAULT ? LOOK_GONE : NO_STATE;
	if (is_first)
		block->size_word = has_chunk ? size_word : 0;
	else if (block->size_word && block->size_word != size_word)
		return LOOK_GONE;
	if (has_chunk && block->size_word && !(look->view.next_size_word & CHUNK_PREV_INUSE))
		return LOOK_GONE;
	block->content = hash_words(look->view.content, CONTENT_WORDS, 0);
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

/* Forgets the blocks that are marked by pid 0. */
static void drop_marked(struct looks *looks)
{
	size_t nr_left = 0;

	for (size_t i = 0; i < looks->nr; i++)
		if (looks->blocks[i].pid)
			looks->blocks[nr_left++] = looks->blocks[i];
	looks->nr = nr_left;
}

/* Has the thread read the blocks whose time has come. */
static void begin_batch(struct looks *looks, struct target_table *table, bool at_all)
{
	uint64_t now_ns = clock_now_ns();
	struct look_batch *batch;

	for (size_t i = 0; i < looks->nr; i++)
		if ((at_all || now_ns >= looks->blocks[i].next_ns) &&
		    !target_table_find(table, (unsigned int)looks->blocks[i].pid))
			looks->blocks[i].pid = 0;
	drop_marked(looks);
	batch = calloc(1, sizeof(*batch) + looks->nr * sizeof(batch->looks[0]));
	for (size_t i = 0; batch && i < looks->nr; i++)
		if (at_all || now_ns >= looks->blocks[i].next_ns)
			batch->looks[batch->nr++] =
				(struct look){.nth = i, .block = looks->blocks[i]};
	if (!batch || !batch->nr) {
		free(batch);
		return;
	}
	if (!looks->thread)
		looks->thread = read_thread_create();
	if (!looks->thread) {
		free(batch);
		return;
	}
	batch->begin_ns = now_ns;
	looks->batch = batch;
	read_thread_begin(looks->thread, read_batch, batch);
}

static bool is_same(const struct watched_block *a, const struct watched_block *b)
{
	return a->pid == b->pid && a->address == b->address && a->allocated_ns == b->allocated_ns;
}

/* Writes what the thread has found. */
static int write_batch(struct looks *looks, struct perf_writer *writer)
{
	const struct look_batch *batch = looks->batch;
	uint64_t now_ns = clock_now_ns();
	bool is_stale = now_ns >= batch->begin_ns + STALE_NS;
	int err = 0;

	for (size_t i = 0; i < batch->nr; i++) {
		const struct look *look = &batch->looks[i];
		struct watched_block *block = &looks->blocks[look->nth];
		enum look_state state;

		/* Another one may have taken its place. */
		if (!is_same(block, &look->block))
			continue;
		block->next_ns = next_look_ns(looks, block->nr_looks, now_ns);
		if (is_stale || look->err == -EAGAIN)
			continue;
		state = state_of(block, look);
		block->nr_looks++;
		if (state && !err)
			err = write_look(block, state, clock_now_ns(), writer);
		if (!state || state == LOOK_GONE)
			block->pid = 0;
	}
	drop_marked(looks);
	return err;
}

/* Waits for the thread, at most until @until_ns, and writes what it has found. */
static int end_batch(struct looks *looks, struct perf_writer *writer, uint64_t until_ns)
{
	struct look_batch *batch = looks->batch;
	uint64_t now_ns = clock_now_ns();
	int err;

	if (!batch)
		return 0;
	if (read_thread_wait(looks->thread, until_ns > now_ns ? until_ns - now_ns : 0)) {
		err = write_batch(looks, writer);
		free(batch);
		looks->batch = NULL;
		return err;
	}
	if (!looks->has_warned && now_ns >= batch->begin_ns + STUCK_NS) {
		diag_warn("process %d makes reads of its memory wait: no blocks are looked at "
			  "meanwhile",
			  (int)__atomic_load_n(&batch->pid, __ATOMIC_RELAXED));
		looks->has_warned = true;
	}
	return 0;
}

int looks_take(struct looks *looks, struct target_table *table, struct perf_writer *writer,
	       bool at_all)
{
	const uint64_t now_ns = clock_now_ns(), last_ns = now_ns + LAST_NS;
	int err = end_batch(looks, writer, at_all ? last_ns : 0);

	if (!err && !looks->batch) {
		begin_batch(looks, table, at_all);
		err = end_batch(looks, writer, at_all ? last_ns : now_ns + BRIEF_NS);
	}
	if (at_all && looks->batch && !looks->has_warned)
		diag_warn("some blocks were not looked at again: reading them took too long");
	return err;
}
