/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "scan/marking/marking.h"

#include "scan/heaps/glibc.h"
#include "scan/marking/chunks_in_flight.h"
#include "scan/marking/interior_pointers.h"
#include "scan/marking/work_queue.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#define PIECE_BYTES (256u << 10) /* of a root, for one thread at a time */
#define MAX_THREADS 16
#define MAX_HIDDEN  (1u << 20) /* blocks of a second look: of 4 MiB for their filter */

/* Less is marked by one thread. */
#define MIN_TEAM_BLOCKS 10000u
#define MIN_TEAM_WORDS	(1u << 20)

#define NR_AHEAD	8u  /* blocks whose memory is fetched before they are looked through */
#define GIVES_EACH	64u /* blocks */

/* glibc's struct tcache_perthread_struct has 576 to 760 bytes. */
#define MAX_CACHE_BYTES 1024

/* What all threads of one pass share. */
struct pass {
	struct marking *marking;
	struct work_queue queue;
	uint8_t mark;	   /* for what is found */
	bool takes_inside; /* pointers into blocks count like those to starts */
	bool is_weak;	   /* of the roots, only red zones */
	/* The second look: what has been looked through is looked through again, for these. */
	const struct hidden_pointers *hidden;
	_Atomic size_t next_root;
	_Atomic int err;
};

struct marker {
	struct pass *pass;
	struct work work;
	/* What is looked through now. */
	uint32_t holder;
	bool has_chunks;
};

/* Marks the block if nothing better has, and queues it. */
static inline int mark_as(struct marker *marker, uint32_t block, uint32_t holder, uint8_t mark)
{
	struct marking *marking = marker->pass->marking;
	uint8_t before =
		atomic_load_explicit(&marking->states[block], memory_order_relaxed) & MARK_ALL;

	if (before)
		return 0;
	before = atomic_fetch_or_explicit(&marking->states[block], mark, memory_order_relaxed);
	if (before & MARK_ALL)
		return 0;
	atomic_store_explicit(&marking->holders[block], holder, memory_order_relaxed);
	return work_push(&marker->work, &marker->pass->queue, block);
}

static inline int mark_block(struct marker *marker, uint32_t block, uint32_t holder)
{
	return mark_as(marker, block, holder, marker->pass->mark);
}

/* A pointer into a block, which may become reachable by a better one later. */
static void note_inside(struct marker *marker, uint32_t block, uint32_t holder)
{
	struct marking *marking = marker->pass->marking;
	uint32_t none = HOLDER_NONE;

	if (atomic_load_explicit(&marking->states[block], memory_order_relaxed))
		return;
	atomic_fetch_or_explicit(&marking->states[block], MARK_SEEN_INSIDE, memory_order_relaxed);
	atomic_compare_exchange_strong_explicit(&marking->holders[block], &none, holder,
						memory_order_relaxed, memory_order_relaxed);
}

static int mark_inside(struct marker *marker, const struct heap_segment *segment, uint64_t value,
		       uint32_t holder)
{
	const struct heap *heap = marker->pass->marking->heap;
	uint32_t block = heap_map_find(&heap->map, segment, value);
	struct heap_block_view view;

	if (block == HEAP_NONE || marker->pass->marking->states[block] & MARK_ALL)
		return 0;
	heap_block_view(heap, block, &view);
	if (value - view.address >= view.size_bytes)
		return 0;
	if (marker->pass->takes_inside ||
	    interior_pointer_is_sure(heap->snapshot, &view, value - view.address))
		return mark_block(marker, block, holder);
	note_inside(marker, block, holder);
	return 0;
}

/* Marks a free list, from @block on. */
static int mark_list(struct marker *marker, uint32_t block, uint32_t holder)
{
	struct marking *marking = marker->pass->marking;
	int err = 0;

	while (block != HEAP_NONE && !err &&
	       !(atomic_fetch_or_explicit(&marking->states[block], MARK_FOLLOWED,
					  memory_order_relaxed) &
		 MARK_FOLLOWED)) {
		err = mark_block(marker, block, holder);
		block = chunk_next_in_list(marking->heap, block);
	}
	return err;
}

/* @value is a word of a thread inside malloc() or free(). */
static int mark_in_flight(struct marker *marker, uint64_t value, uint32_t holder)
{
	const struct heap *heap = marker->pass->marking->heap;
	uint32_t cache = chunk_block_at(heap, value), behind;
	struct heap_block_view view;
	int err = mark_list(marker, chunk_block_at(heap, value + GLIBC_HEADER), holder);

	if (!err && cache == HEAP_NONE) {
		behind = chunk_behind_free(heap, value);
		return behind == HEAP_NONE ? 0 : mark_block(marker, behind, holder);
	}
	if (!err)
		err = mark_list(marker, cache, holder);
	if (err || heap_block_bytes(heap, cache) > MAX_CACHE_BYTES)
		return err;
	heap_block_view(heap, cache, &view);
	for (uint64_t at = 0; at + 8 <= view.size_bytes && !err; at += 8)
		err = mark_list(marker, chunk_block_at(heap, load_word(view.bytes + at)), holder);
	return err;
}

static inline int mark_value(struct marker *marker, uint64_t value, uint32_t holder)
{
	const struct heap_map *map = &marker->pass->marking->heap->map;
	const struct heap_segment *segment;
	int err = 0;

	if (value < map->lowest || value >= map->highest)
		return 0;
	segment = heap_map_segment(map, value);
	if (!segment)
		return 0;
	if (marker->has_chunks)
		err = mark_in_flight(marker, value, holder);
	if (err)
		return err;
	if (value % HEAP_UNIT == 0 && heap_map_is_set(map, heap_map_unit(segment, value)))
		return mark_block(marker, heap_map_block_at(map, heap_map_unit(segment, value)),
				  holder);
	return mark_inside(marker, segment, value, holder);
}

static uint32_t holder_of_slot(uint64_t slot)
{
	return slot < HOLDER_UNSEEN - HOLDER_ROOT ? HOLDER_ROOT | (uint32_t)slot : HOLDER_UNSEEN;
}

/* What the second look is looking through: a root, a block, or [address, ...) of the heap. */
struct look {
	struct marker *marker;
	const struct root_range *range;
	uint32_t block;
	uint64_t address;
};

static int on_hidden(void *context, uint64_t at, uint32_t block, enum hidden_kind kind)
{
	const struct look *look = context;
	const struct marking *marking = look->marker->pass->marking;
	uint32_t holder = look->block;
	uint64_t offset;

	if (!marking_is_lost(marking, block))
		return 0;
	if (look->range) {
		holder = holder_of_slot(look->range->first_slot + at / 8);
	} else if (holder == HEAP_NONE) {
		holder = heap_find_block(marking->heap, look->address + at, &offset);
		/* It counts what the word is in, and that it does not begin in one and end in
		 * another. */
		if (holder == HEAP_NONE || heap_block_bytes(marking->heap, holder) - offset < 8 ||
		    !(marking->states[holder] & (MARK_HELD | MARK_POSSIBLE)))
			return 0;
	}
	return mark_as(look->marker, block, holder,
		       (uint8_t)(look->marker->pass->mark | kind * MARK_HIDDEN));
}

/* The copied pages of [start, end), which @bytes is the copy of. */
static int look_through(struct look *look, uint64_t start, uint64_t end, const uint8_t *bytes)
{
	const struct pass *pass = look->marker->pass;
	uint64_t address = start, next, first, last;
	int err = 0;

	for (; !err && snapshot_next_copied(pass->marking->heap->snapshot, &address, end, &next);
	     address = next) {
		/* A part of an unaligned address may be zeros of a page that was not copied. */
		first = address - start < 8 ? start : address - 8;
		last = end - next < 8 ? end : next + 8;
		look->address = first;
		err = hidden_pointers_find(pass->hidden, bytes + (first - start), last - first,
					   on_hidden, look);
	}
	return err;
}

/* The heap as a whole is looked through faster than block by block. */
static int look_through_heap(struct marker *marker)
{
	const struct heap_map *map = &marker->pass->marking->heap->map;
	struct look look = {.marker = marker, .block = HEAP_NONE};
	int err = 0;

	for (size_t i = 0; i < map->nr_segments && !err; i++)
		err = look_through(&look, map->segments[i].start, map->segments[i].end,
				   map->segments[i].bytes);
	return err;
}

static int scan_block(struct marker *marker, uint32_t block)
{
	const struct heap *heap = marker->pass->marking->heap;
	struct look look = {.marker = marker, .block = block};
	struct heap_block_view view;
	int err = 0;

	heap_block_view(heap, block, &view);
	marker->has_chunks = false;
	for (uint64_t at = 0, end; !err && heap_block_next(heap, &view, &at, &end); at = end)
		for (; at + 8 <= end && !err; at += 8)
			err = mark_value(marker, load_word(view.bytes + at), block);
	return !err && marker->pass->hidden
		       ? look_through(&look, view.address, view.address + view.size_bytes,
				      view.bytes)
		       : err;
}

static int scan_piece(struct marker *marker, const struct root_range *range, uint64_t at,
		      uint64_t end)
{
	uint64_t step = range->kind == ROOT_CODE ? 1 : 8;
	int err = 0;

	marker->has_chunks = range->has_chunks;
	for (; at < end && at + 8 <= range->size_bytes && !err; at += step)
		err = mark_value(marker, load_word(range->bytes + at),
				 holder_of_slot(range->first_slot + at / 8));
	return err;
}

static int drain(struct marker *marker, bool all)
{
	uint32_t block;
	int err = 0;

	while (!err && work_pop(&marker->work, &marker->pass->queue, all, &block))
		err = scan_block(marker, block);
	return err;
}

static int scan_root(struct marker *marker, const struct root_range *range)
{
	const struct hidden_pointers *hidden = marker->pass->hidden;
	struct look look = {.marker = marker, .range = range, .block = HEAP_NONE};
	int err = 0;

	if (hidden)
		return hidden_pointers_find(hidden, range->bytes, range->size_bytes & ~7ull,
					    on_hidden, &look);
	for (uint64_t at = 0; at < range->size_bytes && !err; at += PIECE_BYTES) {
		err = scan_piece(marker, range, at, at + PIECE_BYTES);
		if (!err)
			err = drain(marker, false);
	}
	return err;
}

/* Takes one root after the other, piece by piece; then what other threads have queued. */
static void *run(void *context)
{
	struct marker *marker = context;
	struct pass *pass = marker->pass;
	const struct roots *roots = pass->marking->roots;
	int err = 0;

	while (!err && !atomic_load(&pass->err)) {
		size_t i = atomic_fetch_add(&pass->next_root, 1);
		const struct root_range *range = &roots->ranges[i];

		if (i == roots->nr && pass->hidden)
			err = look_through_heap(marker);
		if (i >= roots->nr)
			break;
		if ((range->kind == ROOT_RED_ZONE) == pass->is_weak)
			err = scan_root(marker, range);
	}
	if (!err)
		err = drain(marker, true);
	if (err) {
		atomic_store(&pass->err, err);
		work_queue_stop(&pass->queue);
	}
	return NULL;
}

/* Runs one pass; @seeds are blocks to begin with, which are marked. */
static int run_pass(struct pass *pass, const uint32_t *seeds, size_t nr_seeds)
{
	struct marker markers[MAX_THREADS] = {{.pass = pass}};
	pthread_t threads[MAX_THREADS];
	unsigned nr = pass->marking->nr_threads, started = 0;
	int err = 0;

	work_queue_init(&pass->queue, nr);
	for (unsigned i = 0; i < nr && !err; i++) {
		markers[i].pass = pass;
		err = work_init(&markers[i].work);
	}
	for (size_t i = 0; i < nr_seeds && !err; i++)
		err = work_push(&markers[0].work, &pass->queue, seeds[i]);
	/* A thread that cannot be started is one that never works. */
	for (unsigned i = 1; i < nr && !err; i++)
		if (pthread_create(&threads[started], NULL, run, &markers[i]) == 0)
			started++;
		else
			work_queue_leave(&pass->queue);
	if (!err)
		run(&markers[0]);
	for (unsigned i = 0; i < started; i++)
		pthread_join(threads[i], NULL);
	for (unsigned i = 0; i < nr; i++)
		work_deinit(&markers[i].work);
	work_queue_deinit(&pass->queue);
	return err ? err : atomic_load(&pass->err);
}

/* Marks what held blocks have pointers into, and all that this leads to. */
static int mark_possible(struct marking *marking)
{
	struct pass pass = {.marking = marking, .mark = MARK_POSSIBLE, .takes_inside = true};
	uint32_t nr_blocks = marking->heap->map.nr_blocks, *seeds;
	size_t nr = 0;
	int err;

	for (uint32_t i = 0; i < nr_blocks; i++)
		nr += marking->states[i] == MARK_SEEN_INSIDE;
	seeds = calloc(nr + 1, sizeof(*seeds));
	if (!seeds)
		return -ENOMEM;
	nr = 0;
	for (uint32_t i = 0; i < nr_blocks; i++) {
		if (marking->states[i] != MARK_SEEN_INSIDE)
			continue;
		marking->states[i] |= MARK_POSSIBLE;
		seeds[nr++] = i;
	}
	pass.next_root = marking->roots->nr;
	err = run_pass(&pass, seeds, nr);
	free(seeds);
	return err;
}

/*
 * Looks for addresses in other forms, of blocks that nothing leads to. These are usually few, so
 * all the rest is passed over quickly.
 */
static int mark_hidden(struct marking *marking)
{
	struct hidden_pointers hidden;
	struct pass pass = {
		.marking = marking, .mark = MARK_POSSIBLE, .takes_inside = true, .hidden = &hidden};
	uint32_t nr_blocks = marking->heap->map.nr_blocks;
	size_t nr = 0;
	int err;

	for (uint32_t i = 0; i < nr_blocks; i++)
		nr += marking_is_lost(marking, i);
	marking->has_too_many = nr > MAX_HIDDEN;
	if (!nr || marking->has_too_many)
		return 0;
	err = hidden_pointers_init(&hidden, marking->heap, nr);
	if (!err) {
		for (uint32_t i = 0; i < nr_blocks; i++)
			if (marking_is_lost(marking, i))
				hidden_pointers_add(&hidden, i);
		err = run_pass(&pass, NULL, 0);
	}
	hidden_pointers_deinit(&hidden);
	return err;
}

int marking_mark_unconfirmed(struct marking *marking, const uint32_t *blocks, size_t nr)
{
	struct pass pass = {.marking = marking,
			    .mark = MARK_UNCONFIRMED,
			    .takes_inside = true,
			    .next_root = marking->roots->nr};

	for (size_t i = 0; i < nr; i++)
		marking->states[blocks[i]] |= MARK_UNCONFIRMED;
	return run_pass(&pass, blocks, nr);
}

int marking_init(struct marking *ret, const struct heap *heap, const struct roots *roots)
{
	struct pass held = {.marking = ret, .mark = MARK_HELD};
	struct pass weak = {
		.marking = ret, .mark = MARK_WEAK, .takes_inside = true, .is_weak = true};
	size_t nr = heap->map.nr_blocks;
	long nr_cpus = sysconf(_SC_NPROCESSORS_ONLN);
	int err;

	*ret = (struct marking){.heap = heap, .roots = roots};
	ret->nr_threads = nr_cpus < 1 ? 1 : nr_cpus > MAX_THREADS ? MAX_THREADS : (unsigned)nr_cpus;
	/* Threads cost more than they save on a small heap. */
	if (nr < 10000)
		ret->nr_threads = 1;
	ret->states = calloc(nr + 1, sizeof(*ret->states));
	ret->holders = malloc((nr + 1) * sizeof(*ret->holders));
	if (!ret->states || !ret->holders)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++)
		ret->holders[i] = HOLDER_NONE;
	err = run_pass(&held, NULL, 0);
	if (!err)
		err = mark_possible(ret);
	if (!err)
		err = run_pass(&weak, NULL, 0);
	return err ? err : mark_hidden(ret);
}

void marking_deinit(struct marking *marking)
{
	free(marking->states);
	free(marking->holders);
	*marking = (struct marking){0};
}
