/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "scan/marking/marking.h"

#include "scan/heaps/glibc.h"
#include "scan/heaps/huge_array.h"
#include "scan/marking/chunks_in_flight.h"
#include "scan/marking/interior_pointers.h"
#include "scan/marking/place_cursor.h"
#include "scan/marking/work_queue.h"
#include "scan/threads/thread_team.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

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
	enum place_kind places; /* where it begins */
	struct place_cursor cursor;
	struct marker *markers; /* by thread */
	uint8_t mark;		/* for what is found */
	bool takes_inside;	/* pointers into blocks count like those to starts */
	/* The second look: what has been looked through is looked through again, for these. */
	const struct hidden_pointers *hidden;
	_Atomic int err;
};

/* A block whose memory is being fetched. */
struct ahead {
	const struct heap_segment *segment;
	uint64_t address;
	uint32_t block;
};

struct marker {
	struct pass *pass;
	struct work work;
	struct ahead ahead[NR_AHEAD]; /* a ring */
	unsigned first_ahead, nr_ahead;
	unsigned nr_taken;
	const struct heap_segment *near_value, *near_block; /* heap_map_segment_near() */
	struct marked_total total;
	bool has_chunks; /* of what is looked through now */
} TEAM_ALIGNED;

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
	/* It is soon looked for there. */
	__builtin_prefetch(&marking->heap->map.blocks[block]);
	return work_push(&marker->work, block);
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

/* @value lies between the heap's first segment and its last. */
static int mark_value(struct marker *marker, uint64_t value, uint32_t holder)
{
	const struct heap_map *map = &marker->pass->marking->heap->map;
	const struct heap_segment *segment = heap_map_segment_near(map, value, &marker->near_value);
	int err = 0;

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

/* True of the few words that may lead to a block. */
static inline bool is_near_heap(const struct heap_map *map, uint64_t value)
{
	return value - map->lowest < map->highest - map->lowest;
}

static uint32_t holder_of_slot(uint64_t slot)
{
	return slot < HOLDER_UNSEEN - HOLDER_ROOT ? HOLDER_ROOT | (uint32_t)slot : HOLDER_UNSEEN;
}

/* What the second look is looking through: a root, a block, or a segment of the heap. */
struct look {
	struct marker *marker;
	const struct root_range *range;
	const struct heap_segment *segment;
	uint32_t block;
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
	} else if (look->segment) {
		holder = heap_find_block(marking->heap, look->segment->start + at, &offset);
		/* It counts what the word is in, and that it does not begin in one and end in
		 * another. */
		if (holder == HEAP_NONE || heap_block_bytes(marking->heap, holder) - offset < 8 ||
		    !(marking->states[holder] & (MARK_HELD | MARK_POSSIBLE)))
			return 0;
	}
	return mark_as(look->marker, block, holder,
		       (uint8_t)(look->marker->pass->mark | kind * MARK_HIDDEN));
}

static int look_through_block(struct marker *marker, uint32_t block,
			      const struct heap_block_view *view)
{
	const struct pass *pass = marker->pass;
	struct look look = {.marker = marker, .block = block};
	struct hidden_place place = {.bytes = view->bytes, .size_bytes = view->size_bytes};
	uint64_t at = 0;
	int err = 0;

	for (; !err && heap_block_next(pass->marking->heap, view, &at, &place.end);
	     at = place.end) {
		/* A word across the first byte may be an address, too. */
		place.start = at - (at < 7 ? at : 7);
		err = hidden_pointers_find(pass->hidden, &place, on_hidden, &look);
	}
	return err;
}

static int scan_block(struct marker *marker, uint32_t block, const struct heap_block_view *view)
{
	const struct heap *heap = marker->pass->marking->heap;
	/* Not to be read again at each word. */
	const struct heap_map limits = {.lowest = heap->map.lowest, .highest = heap->map.highest};
	int err = 0;

	marker->has_chunks = false;
	marker->total.nr++;
	marker->total.bytes += view->size_bytes;
	for (uint64_t at = 0, end; !err && heap_block_next(heap, view, &at, &end); at = end)
		for (; at + 8 <= end && !err; at += 8)
			if (is_near_heap(&limits, load_word(view->bytes + at)))
				err = mark_value(marker, load_word(view->bytes + at), block);
	return !err && marker->pass->hidden ? look_through_block(marker, block, view) : err;
}

static int scan_range(struct marker *marker, const struct place *place)
{
	const struct heap_map *map = &marker->pass->marking->heap->map;
	const struct root_range *range = place->range;
	uint64_t step = range->kind == ROOT_CODE ? 1 : 8;
	int err = 0;

	marker->has_chunks = range->has_chunks;
	for (uint64_t at = place->start; at < place->end && at + 8 <= range->size_bytes && !err;
	     at += step)
		if (is_near_heap(map, load_word(range->bytes + at)))
			err = mark_value(marker, load_word(range->bytes + at),
					 holder_of_slot(range->first_slot + at / 8));
	return err;
}

static int scan_place(struct marker *marker, const struct place *place)
{
	const struct hidden_pointers *hidden = marker->pass->hidden;
	const struct root_range *range = place->range;
	struct look look = {marker, range, place->segment, HEAP_NONE};
	struct hidden_place bytes = {.start = place->start, .end = place->end};

	if (!hidden)
		return scan_range(marker, place);
	/* The heap as a whole is looked through faster than block by block. */
	bytes.bytes = range ? range->bytes : place->segment->bytes;
	bytes.size_bytes =
		range ? range->size_bytes & ~7ull : place->segment->end - place->segment->start;
	return hidden_pointers_find(hidden, &bytes, on_hidden, &look);
}

/* Has the memory of the next blocks fetched, while others are looked through. */
static void fetch_ahead(struct marker *marker)
{
	const struct heap_map *map = &marker->pass->marking->heap->map;
	uint32_t block;

	while (marker->nr_ahead < NR_AHEAD && work_pop(&marker->work, &block)) {
		struct ahead *ahead =
			&marker->ahead[(marker->first_ahead + marker->nr_ahead++) % NR_AHEAD];
		const uint8_t *bytes;

		ahead->block = block;
		ahead->segment =
			heap_map_block_near(map, block, &marker->near_block, &ahead->address);
		bytes = ahead->segment->bytes + (ahead->address - ahead->segment->start);
		__builtin_prefetch(bytes - 8);
		__builtin_prefetch(bytes + 56);
	}
}

/* Gives work away, if this is the time for it, and somebody has none. */
static int share(struct marker *marker)
{
	int err = 0;

	if (++marker->nr_taken % GIVES_EACH || !work_queue_is_hungry(&marker->pass->queue))
		return 0;
	if (!marker->work.nr)
		while (marker->nr_ahead && !err)
			err = work_push(
				&marker->work,
				marker->ahead[(marker->first_ahead + --marker->nr_ahead) % NR_AHEAD]
					.block);
	work_give(&marker->work, &marker->pass->queue);
	return err;
}

static int drain(struct marker *marker)
{
	const struct heap *heap = marker->pass->marking->heap;
	int err = 0;

	while (!err) {
		struct heap_block_view view;
		const struct ahead *next;

		err = share(marker);
		fetch_ahead(marker);
		if (err || !marker->nr_ahead)
			break;
		next = &marker->ahead[marker->first_ahead];
		marker->first_ahead = (marker->first_ahead + 1) % NR_AHEAD;
		marker->nr_ahead--;
		heap_block_view_at(heap, next->block, next->segment, next->address, &view);
		err = scan_block(marker, next->block, &view);
	}
	return err;
}

/* Takes one place after the other; then what other threads have queued. */
static void run(void *context, unsigned thread)
{
	struct pass *pass = context;
	struct marker *marker = &pass->markers[thread];
	struct place place;
	int err = 0;

	work_queue_enter(&pass->queue);
	while (!err && !atomic_load(&pass->err) && place_cursor_next(&pass->cursor, &place)) {
		err = scan_place(marker, &place);
		if (!err)
			err = drain(marker);
	}
	while (!err && (marker->work.nr || work_wait(&marker->work, &pass->queue)))
		err = drain(marker);
	if (err) {
		atomic_store(&pass->err, err);
		work_queue_stop(&pass->queue);
	}
}

/* Runs one pass; @seeds are blocks to begin with, which are marked. */
static int run_pass(struct pass *pass, const uint32_t *seeds, size_t nr_seeds)
{
	struct marker markers[TEAM_MAX_THREADS];
	struct marking *marking = pass->marking;
	struct marked_total *total = &marking->totals[__builtin_ctz(pass->mark)];
	int err = 0;

	pass->markers = markers;
	work_queue_init(&pass->queue);
	place_cursor_init(&pass->cursor, marking->heap, marking->roots, pass->places);
	memset(markers, 0, sizeof(markers));
	for (unsigned i = 0; i < marking->nr_threads && !err; i++) {
		markers[i].pass = pass;
		err = work_init(&markers[i].work);
	}
	for (size_t i = 0; i < nr_seeds && !err; i++)
		err = work_push(&markers[0].work, seeds[i]);
	if (!err)
		thread_team_run(marking->nr_threads, run, pass);
	for (unsigned i = 0; i < marking->nr_threads; i++) {
		total->nr += markers[i].total.nr;
		total->bytes += markers[i].total.bytes;
		work_deinit(&markers[i].work);
	}
	place_cursor_deinit(&pass->cursor);
	work_queue_deinit(&pass->queue);
	return err ? err : atomic_load(&pass->err);
}

/* Marks what held blocks have pointers into, and all that this leads to. */
static int mark_possible(struct marking *marking)
{
	struct pass pass = {.marking = marking, .mark = MARK_POSSIBLE, .takes_inside = true};
	uint32_t nr_blocks = marking->heap->map.nr_blocks, *seeds, block;
	size_t nr = 0;
	int err;

	for (block = marking_next(marking, 0); block < nr_blocks;
	     block = marking_next(marking, block + 1))
		nr += marking->states[block] == MARK_SEEN_INSIDE;
	seeds = calloc(nr + 1, sizeof(*seeds));
	if (!seeds)
		return -ENOMEM;
	nr = 0;
	for (block = marking_next(marking, 0); block < nr_blocks;
	     block = marking_next(marking, block + 1)) {
		if (marking->states[block] != MARK_SEEN_INSIDE)
			continue;
		marking->states[block] |= MARK_POSSIBLE;
		seeds[nr++] = block;
	}
	err = run_pass(&pass, seeds, nr);
	free(seeds);
	return err;
}

/*
 * Looks for addresses in other forms, of blocks that nothing leads to. These are usually few, so
 * all the rest is passed over quickly. If most blocks are such ones, it takes some times as long as
 * the first look.
 */
static int mark_hidden(struct marking *marking)
{
	struct hidden_pointers hidden;
	struct pass pass = {.marking = marking,
			    .mark = MARK_POSSIBLE,
			    .takes_inside = true,
			    .hidden = &hidden,
			    .places = PLACE_ALL};
	uint32_t nr_blocks = marking->heap->map.nr_blocks, block;
	size_t nr = 0;
	int err;

	for (block = marking_next(marking, 0); block < nr_blocks;
	     block = marking_next(marking, block + 1))
		nr += marking_is_lost(marking, block);
	if (!nr)
		return 0;
	err = hidden_pointers_init(&hidden, marking->heap, nr);
	if (!err) {
		for (block = marking_next(marking, 0); block < nr_blocks;
		     block = marking_next(marking, block + 1))
			if (marking_is_lost(marking, block))
				hidden_pointers_add(&hidden, block);
		err = run_pass(&pass, NULL, 0);
	}
	hidden_pointers_deinit(&hidden);
	return err;
}

uint32_t marking_next(const struct marking *marking, uint32_t from)
{
	const uint64_t held = MARK_HELD * 0x0101010101010101ull;
	uint32_t nr = marking->heap->map.nr_blocks;
	uint64_t states;

	/* Most are held: eight at a time. */
	for (; from < nr; from += 8) {
		if (nr - from < 8)
			break;
		memcpy(&states, (const uint8_t *)marking->states + from, sizeof(states));
		states = ~states & held;
		if (states)
			return from + (uint32_t)__builtin_ctzll(states) / 8;
	}
	while (from < nr && marking->states[from] & MARK_HELD)
		from++;
	return from;
}

int marking_mark_unconfirmed(struct marking *marking, const uint32_t *blocks, size_t nr)
{
	struct pass pass = {.marking = marking, .mark = MARK_UNCONFIRMED, .takes_inside = true};

	for (size_t i = 0; i < nr; i++)
		marking->states[blocks[i]] |= MARK_UNCONFIRMED;
	return run_pass(&pass, blocks, nr);
}

int marking_init(struct marking *ret, const struct heap *heap, const struct roots *roots)
{
	struct pass held = {.marking = ret, .mark = MARK_HELD, .places = PLACE_ROOTS};
	struct pass weak = {
		.marking = ret, .mark = MARK_WEAK, .takes_inside = true, .places = PLACE_RED_ZONES};
	size_t nr = heap->map.nr_blocks;
	int err;

	*ret = (struct marking){.heap = heap, .roots = roots};
	/* Threads cost more than they save on a small heap. */
	ret->nr_threads =
		nr < MIN_TEAM_BLOCKS && roots->nr_slots < MIN_TEAM_WORDS ? 1 : thread_team_size();
	ret->states = huge_array_alloc(nr + 1, sizeof(*ret->states), 0);
	ret->holders = huge_array_alloc(nr + 1, sizeof(*ret->holders), 0xff);
	if (!ret->states || !ret->holders)
		return -ENOMEM;
	_Static_assert(HOLDER_NONE == UINT32_MAX, "is what the bytes make");
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
