/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Compares random system calls of several threads, of which the tracker sees only entry and exit,
 * with a model that keeps the origin of each page. Then tests single cases.
 */
#include "parser/calls/heap_tracker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <cmocka.h>

#define PAGES	  64
#define PAGE	  4096ULL
#define BASE	  0x7f0000000000ULL
#define PID	  100
#define THREADS	  4
#define NR_STACKS 7
#define STEPS	  20000
#define ROUNDS	  8

struct feed {
	struct heap_tracker *tracker;
	uint64_t sequence;
	struct perf_event_desc events[8][2];
};

static const char *const names[] = {"mmap", "munmap", "mremap", "brk"};

static void feed_init(struct feed *feed)
{
	memset(feed, 0, sizeof(*feed));
	assert_int_equal(heap_tracker_create(NULL, &feed->tracker), 0);
	for (int i = 0; i < 4; i++) {
		for (int is_exit = 0; is_exit < 2; is_exit++) {
			struct perf_event_desc *event = &feed->events[i][is_exit];
			char name[32];

			snprintf(name, sizeof(name), "sys_%s_%s", is_exit ? "exit" : "enter",
				 names[i]);
			event->syscall = syscall_schema_parse_event(name, &event->is_syscall_exit);
			assert_non_null(event->syscall);
			assert_int_equal(event->is_syscall_exit, is_exit);
		}
	}
}

enum call { MMAP, MUNMAP, MREMAP, BRK };

static struct perf_sample sample_of(struct feed *feed, enum call call, bool is_exit, pid_t tid)
{
	struct perf_sample sample = {.event = &feed->events[call][is_exit]};

	feed->sequence++;
	sample.origin.pid = tid / 1000 ? tid / 1000 : PID;
	sample.origin.tid = tid;
	sample.origin.sequence = feed->sequence;
	sample.origin.time_ns = feed->sequence * 1000;
	return sample;
}

static void enter(struct feed *feed, enum call call, pid_t tid, const uint64_t args[5])
{
	struct perf_sample sample = sample_of(feed, call, false, tid);

	memcpy(sample.args, args, 5 * sizeof(*args));
	assert_int_equal(heap_tracker_syscall(feed->tracker, &sample, 0, MAPPING_OWNER_UNKNOWN), 0);
}

static void leave(struct feed *feed, enum call call, pid_t tid, uint64_t ret, uint32_t stack_id,
		  enum mapping_owner owner)
{
	struct perf_sample sample = sample_of(feed, call, true, tid);

	sample.ret = ret;
	assert_int_equal(heap_tracker_syscall(feed->tracker, &sample, stack_id, owner), 0);
}

#define ERROR(nr) ((uint64_t) - (nr))
#define CALL(feed, call, tid, ret, stack, ...)                                                     \
	do {                                                                                       \
		enter(feed, call, tid, (const uint64_t[5]){__VA_ARGS__});                          \
		leave(feed, call, tid, ret, stack, MAPPING_IS_PROGRAMS);                           \
	} while (0)

/* The model. */

struct origin {
	uint64_t sequence; /* 0: not mapped, or not known */
	uint32_t stack;
};

/* An open call. */
struct pending {
	enum call call;
	bool under_way, fails;
	uint64_t args[5], ret;
	uint64_t first, nr;	  /* pages that it maps */
	uint64_t taken, taken_nr; /* that its entry unmaps */
	struct origin before[PAGES];
};

struct model {
	struct origin pages[PAGES];
	/*
	 * Other calls do not touch the pages of an open call, as the results would depend on their
	 * order.
	 */
	bool busy[PAGES];
	struct pending pending[THREADS];
	uint32_t random;
};

static uint32_t below(struct model *model, uint64_t limit)
{
	model->random = model->random * 1664525 + 1013904223;
	return (uint32_t)((model->random >> 8) % limit);
}

static bool is_free_of_calls(const struct model *model, uint64_t first, uint64_t nr)
{
	for (uint64_t i = first; i < first + nr; i++)
		if (i >= PAGES || model->busy[i])
			return false;
	return true;
}

static void set_busy(struct model *model, uint64_t first, uint64_t nr, bool busy)
{
	for (uint64_t i = first; i < first + nr; i++)
		model->busy[i] = busy;
}

static void set_pages(struct model *model, uint64_t first, uint64_t nr, struct origin origin)
{
	for (uint64_t i = first; i < first + nr; i++)
		model->pages[i] = origin;
}

static bool any_known(const struct model *model, uint64_t first, uint64_t nr)
{
	for (uint64_t i = first; i < first + nr; i++)
		if (model->pages[i].sequence)
			return true;
	return false;
}

/* Plans a call of a thread. Returns false if its pages are in use. */
static bool plan(struct model *model, struct pending *pending)
{
	uint64_t from = below(model, PAGES), to = below(model, PAGES);
	uint64_t nr_from = 1 + below(model, 12), nr_to = 1 + below(model, 12);

	*pending = (struct pending){
		.call = (enum call)below(model, 3),
		.fails = below(model, 4) == 0,
		.under_way = true,
	};
	if (!is_free_of_calls(model, from, nr_from))
		return false;
	set_busy(model, from, nr_from, true);
	pending->taken = from;
	pending->taken_nr = nr_from;
	pending->args[0] = BASE + from * PAGE;
	pending->args[1] = nr_from * PAGE - below(model, 2) * 100;
	pending->first = from;
	pending->nr = nr_from;
	pending->ret = BASE + from * PAGE;
	if (pending->call == MMAP)
		pending->args[3] = MAP_FIXED;
	if (pending->call == MUNMAP)
		pending->ret = 0;
	if (pending->call != MREMAP)
		return true;
	pending->args[2] = nr_to * PAGE;
	pending->args[3] = MREMAP_MAYMOVE;
	if (below(model, 2)) { /* it stays in place if there is room */
		uint64_t more = nr_to > nr_from ? nr_to - nr_from : 0;

		pending->args[3] = below(model, 2) ? MREMAP_MAYMOVE : 0;
		pending->nr = nr_to;
		if (is_free_of_calls(model, from + nr_from, more)) {
			set_busy(model, from + nr_from, more, true);
			return true;
		}
	} else if (is_free_of_calls(model, to, nr_to)) {
		pending->args[3] |= MREMAP_FIXED;
		pending->args[4] = BASE + to * PAGE;
		pending->first = to;
		pending->nr = nr_to;
		pending->ret = BASE + to * PAGE;
		set_busy(model, to, nr_to, true);
		return true;
	}
	set_busy(model, from, nr_from, false);
	return false;
}

static void begin(struct feed *feed, struct model *model, int thread)
{
	struct pending *pending = &model->pending[thread];

	if (!plan(model, pending)) {
		pending->under_way = false;
		return;
	}
	memcpy(pending->before, model->pages, sizeof(pending->before));
	enter(feed, pending->call, PID + thread, pending->args);
}

static void finish_mremap(struct model *model, const struct pending *pending, struct origin origin)
{
	uint64_t nr_old = pending->taken_nr, nr_new = pending->nr;
	bool known = any_known(model, pending->taken, nr_old);

	if (pending->first == pending->taken && nr_new <= nr_old) {
		set_pages(model, pending->taken + nr_new, nr_old - nr_new, (struct origin){0});
		return;
	}
	set_pages(model, pending->taken, nr_old, (struct origin){0});
	if (known) {
		set_pages(model, pending->first, nr_new, origin);
		return;
	}
	/* Of an unknown mapping, only the growth counts. */
	set_pages(model, pending->first, nr_old < nr_new ? nr_old : nr_new, (struct origin){0});
	if (nr_new > nr_old)
		set_pages(model, pending->first + nr_old, nr_new - nr_old, origin);
}

static void finish(struct feed *feed, struct model *model, int thread)
{
	struct pending *pending = &model->pending[thread];
	struct origin origin = {.stack = 1 + below(model, NR_STACKS)};

	leave(feed, pending->call, PID + thread, pending->fails ? ERROR(12) : pending->ret,
	      origin.stack, MAPPING_IS_PROGRAMS);
	origin.sequence = feed->sequence;
	set_busy(model, pending->taken, pending->taken_nr, false);
	set_busy(model, pending->first, pending->nr, false);
	pending->under_way = false;
	if (pending->fails)
		return;
	if (pending->call == MREMAP)
		finish_mremap(model, pending, origin);
	else
		set_pages(model, pending->taken, pending->taken_nr,
			  pending->call == MMAP ? origin : (struct origin){0});
}

/* Compares the held list, page by page, and the sites' counts. */
static void compare(struct feed *feed, const struct model *model)
{
	uint64_t seen[PAGES] = {0}, blocks_of[NR_STACKS + 1] = {0}, bytes_of[NR_STACKS + 1] = {0};
	const struct resource_counts *counts;
	const struct heap_block *held;
	size_t nr, nr_runs = 0;

	assert_int_equal(heap_tracker_held(feed->tracker, &held, &nr), 0);
	for (size_t i = 0; i < nr; i++) {
		uint64_t page = (held[i].address - BASE) / PAGE;

		assert_true(held[i].size_known && !held[i].inherited && held[i].size_bytes);
		blocks_of[held[i].allocated.stack_id]++;
		bytes_of[held[i].allocated.stack_id] += held[i].size_bytes;
		for (uint64_t k = 0; k < held[i].size_bytes / PAGE; k++) {
			assert_true(page + k < PAGES && !seen[page + k]);
			seen[page + k] = held[i].allocated.sequence;
			assert_int_equal(held[i].allocated.stack_id, model->pages[page + k].stack);
		}
	}
	for (size_t i = 0; i < PAGES; i++) {
		uint64_t origin = model->pages[i].sequence;

		assert_int_equal(seen[i], origin);
		nr_runs += origin && (i == 0 || origin != model->pages[i - 1].sequence);
	}
	assert_int_equal(nr, nr_runs);
	for (uint32_t stack = 1; stack <= NR_STACKS; stack++) {
		const struct site *site = site_stats_find(heap_tracker_sites(feed->tracker), stack);

		assert_int_equal(site ? site->held_bytes : 0, bytes_of[stack]);
		assert_int_equal(site ? site_held_blocks(site) : 0, blocks_of[stack]);
	}
	counts = &heap_tracker_resources(feed->tracker)[RESOURCE_MAPPINGS - 1];
	assert_int_equal(counts->gives - counts->takes, nr);
}

static bool is_idle(const struct model *model)
{
	for (int i = 0; i < THREADS; i++)
		if (model->pending[i].under_way)
			return false;
	return true;
}

static void test_random(void **state)
{
	for (uint32_t round = 1; round <= ROUNDS; round++) {
		struct model model = {.random = round * 7919};
		struct feed feed;

		feed_init(&feed);
		for (int step = 0; step < STEPS; step++) {
			int thread = (int)below(&model, THREADS);

			if (model.pending[thread].under_way)
				finish(&feed, &model, thread);
			else
				begin(&feed, &model, thread);
			if (is_idle(&model))
				compare(&feed, &model);
		}
		for (int i = 0; i < THREADS; i++)
			if (model.pending[i].under_way)
				finish(&feed, &model, i);
		compare(&feed, &model);
		heap_tracker_destroy(feed.tracker);
	}
}

/* Single cases. */

static void assert_held(struct feed *feed, size_t nr_wanted, uint64_t bytes_wanted)
{
	const struct heap_block *held;
	uint64_t bytes = 0;
	size_t nr;

	assert_int_equal(heap_tracker_held(feed->tracker, &held, &nr), 0);
	for (size_t i = 0; i < nr; i++)
		bytes += held[i].size_bytes;
	assert_int_equal(nr, nr_wanted);
	assert_int_equal(bytes, bytes_wanted);
}

/* Another thread gets the range before the munmap's exit is seen. */
static void test_handed_on(void **state)
{
	struct feed feed;

	feed_init(&feed);
	CALL(&feed, MMAP, PID, BASE, 1, 0, 4 * PAGE);
	enter(&feed, MUNMAP, PID, (const uint64_t[5]){BASE, 4 * PAGE});
	CALL(&feed, MMAP, PID + 1, BASE, 2, 0, 2 * PAGE);
	leave(&feed, MUNMAP, PID, 0, 0, MAPPING_OWNER_UNKNOWN);
	assert_held(&feed, 1, 2 * PAGE);
	/* The same for a mapping that moves. */
	enter(&feed, MREMAP, PID + 1, (const uint64_t[5]){BASE, 2 * PAGE, 8 * PAGE, 1});
	CALL(&feed, MMAP, PID, BASE, 3, 0, PAGE);
	leave(&feed, MREMAP, PID + 1, BASE + 20 * PAGE, 4, MAPPING_IS_PROGRAMS);
	assert_held(&feed, 2, 9 * PAGE);
	/* The same for one that shrinks. */
	enter(&feed, MREMAP, PID + 1, (const uint64_t[5]){BASE + 20 * PAGE, 8 * PAGE, 2 * PAGE});
	CALL(&feed, MMAP, PID, BASE + 22 * PAGE, 3, 0, 6 * PAGE);
	leave(&feed, MREMAP, PID + 1, BASE + 20 * PAGE, 4, MAPPING_IS_PROGRAMS);
	assert_held(&feed, 3, 9 * PAGE);
	heap_tracker_destroy(feed.tracker);
}

static void test_break(void **state)
{
	struct feed feed;

	feed_init(&feed);
	/* The old break is not known. */
	CALL(&feed, BRK, PID, BASE + 1000, 1, BASE + 1000);
	assert_held(&feed, 0, 0);
	CALL(&feed, BRK, PID, BASE + 5000, 1, BASE + 5000);
	CALL(&feed, BRK, PID, BASE + 5000, 1, 0);
	CALL(&feed, BRK, PID, BASE + 9000, 2, BASE + 9000);
	assert_held(&feed, 2, 8000);
	/* It failed: the break has not moved. */
	CALL(&feed, BRK, PID, BASE + 9000, 1, UINT64_MAX / 2);
	assert_held(&feed, 2, 8000);
	CALL(&feed, BRK, PID, BASE + 4000, 1, BASE + 4000);
	assert_held(&feed, 1, 3000);
	CALL(&feed, BRK, PID, BASE + 500, 1, BASE + 500);
	assert_held(&feed, 0, 0);
	heap_tracker_destroy(feed.tracker);
}

static void test_own(void **state)
{
	const struct perf_task_record exits[] = {
		{.pid = 200, .tid = 200000, .origin = {.time_ns = 1}},
		{.pid = 200, .tid = 200, .origin = {.time_ns = 1}},
	};
	struct feed feed;

	feed_init(&feed);
	/* Another process, which ends, but its own mappings count. */
	enter(&feed, MMAP, 200000, (const uint64_t[5]){0, PAGE});
	leave(&feed, MMAP, 200000, BASE, 1, MAPPING_IS_OWN);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(heap_tracker_exit(feed.tracker, &exits[i]), 0);
	enter(&feed, MMAP, PID, (const uint64_t[5]){0, 10 * PAGE});
	leave(&feed, MMAP, PID, BASE, 1, MAPPING_IS_OWN);
	CALL(&feed, MMAP, PID, BASE + 20 * PAGE, 2, 0, 3 * PAGE);
	/* A thread's stack that glibc made, but that no frame identifies. */
	enter(&feed, MMAP, PID,
	      (const uint64_t[5]){0, 5 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_STACK});
	leave(&feed, MMAP, PID, BASE + 40 * PAGE, 0, MAPPING_OWNER_UNKNOWN);
	CALL(&feed, MUNMAP, PID, 0, 0, BASE + 2 * PAGE, 3 * PAGE);
	assert_held(&feed, 1, 3 * PAGE);
	assert_null(site_stats_find(heap_tracker_sites(feed.tracker), 1));
	assert_int_equal(heap_tracker_finish(feed.tracker), 0);
	assert_int_equal(heap_tracker_stats(feed.tracker)->own_mappings, 4);
	assert_int_equal(heap_tracker_stats(feed.tracker)->own_mapped_bytes, 13 * PAGE);
	assert_held(&feed, 1, 3 * PAGE);
	heap_tracker_destroy(feed.tracker);
}

/* In an open call of malloc(), which longjmp() may have left. */
static void test_open_calls(void **state)
{
	const struct perf_event_desc event = {
		.schema = probe_schema_find("malloc"),
		.point = PROBE_ENTRY,
	};
	const struct perf_sample entry = {
		.event = &event,
		.origin = {.pid = PID, .tid = PID, .time_ns = 1},
		.args = {100},
		.caller = 0x401234,
		.probe_address = BASE,
	};
	struct feed feed;

	feed_init(&feed);
	assert_false(heap_tracker_has_open_calls(feed.tracker, PID));
	assert_int_equal(heap_tracker_sample(feed.tracker, &entry, 0), 0);
	assert_true(heap_tracker_has_open_calls(feed.tracker, PID));
	assert_true(heap_tracker_has_frame(feed.tracker, PID, BASE + 0x20, 0x401234));
	assert_false(heap_tracker_has_frame(feed.tracker, PID, BASE + 0x20, 0x401235));
	assert_false(heap_tracker_has_frame(feed.tracker, PID, 0x401300, 0x401234));
	assert_false(heap_tracker_has_frame(feed.tracker, PID + 1, BASE + 0x20, 0x401234));
	enter(&feed, MMAP, PID, (const uint64_t[5]){0, PAGE});
	leave(&feed, MMAP, PID, BASE, 1, MAPPING_IS_PROGRAMS);
	assert_held(&feed, 0, 0);
	enter(&feed, MMAP, PID, (const uint64_t[5]){0, PAGE});
	leave(&feed, MMAP, PID, BASE + 2 * PAGE, 1, MAPPING_IS_SURELY_PROGRAMS);
	assert_held(&feed, 1, PAGE);
	heap_tracker_destroy(feed.tracker);
}

/* Numbers that no kernel accepts or returns. */
static void test_nonsense(void **state)
{
	static const uint64_t odd[] = {
		0, 1, PAGE - 1, PAGE, BASE, UINT64_MAX, UINT64_MAX - PAGE, UINT64_MAX / 2 + 1,
	};
	struct feed feed;

	feed_init(&feed);
	for (size_t i = 0; i < 8 * 8 * 8 * 8; i++) {
		const uint64_t args[5] = {odd[i % 8], odd[i / 8 % 8], odd[i / 64 % 8], odd[i / 512],
					  odd[(i + 3) % 8]};

		for (int call = 0; call < 4; call++) {
			enter(&feed, (enum call)call, PID, args);
			leave(&feed, (enum call)call, PID, odd[(i / 7) % 8], 1 + i % 3,
			      MAPPING_IS_PROGRAMS);
		}
	}
	/* Entries without exits, and exits without entries. */
	leave(&feed, MUNMAP, PID + 1, 0, 0, MAPPING_OWNER_UNKNOWN);
	leave(&feed, MREMAP, PID + 1, BASE, 1, MAPPING_IS_PROGRAMS);
	enter(&feed, MMAP, PID + 1, (const uint64_t[5]){0, PAGE});
	enter(&feed, MMAP, PID + 1, (const uint64_t[5]){0, PAGE});
	leave(&feed, MUNMAP, PID + 1, 0, 0, MAPPING_OWNER_UNKNOWN);
	assert_int_equal(heap_tracker_finish(feed.tracker), 0);
	heap_tracker_destroy(feed.tracker);
}

/* Only a hostile file has a process whose first thread has another number. */
static void test_fork_of_another_thread(void **state)
{
	const struct perf_task_record fork = {
		.pid = 200, .ppid = PID, .tid = 201, .ptid = PID, .origin = {.time_ns = 1}};
	struct feed feed;

	feed_init(&feed);
	assert_int_equal(heap_tracker_fork(feed.tracker, &fork), 0);
	heap_tracker_destroy(feed.tracker);
}

static void test_fork_and_exec(void **state)
{
	const struct perf_task_record fork = {.pid = 200, .ppid = PID, .tid = 200, .ptid = PID};
	const struct perf_comm_record exec = {.pid = PID, .tid = PID, .exec = true, .comm = "x"};
	struct feed feed;

	feed_init(&feed);
	CALL(&feed, MMAP, PID, BASE, 1, 0, 4 * PAGE);
	assert_int_equal(heap_tracker_fork(feed.tracker, &fork), 0);
	/* The child's own thread, by its number, is of another process. */
	enter(&feed, MUNMAP, 200000, (const uint64_t[5]){BASE + PAGE, PAGE});
	leave(&feed, MUNMAP, 200000, 0, 0, MAPPING_OWNER_UNKNOWN);
	CALL(&feed, MMAP, 200000, BASE + 9 * PAGE, 2, 0, 2 * PAGE);
	assert_held(&feed, 2, 6 * PAGE);
	CALL(&feed, MUNMAP, PID, 0, 0, BASE, PAGE);
	assert_held(&feed, 2, 5 * PAGE);
	assert_int_equal(heap_tracker_comm(feed.tracker, &exec), 0);
	assert_held(&feed, 1, 2 * PAGE);
	heap_tracker_destroy(feed.tracker);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),	   cmocka_unit_test(test_handed_on),
		cmocka_unit_test(test_break),	   cmocka_unit_test(test_own),
		cmocka_unit_test(test_nonsense),   cmocka_unit_test(test_fork_and_exec),
		cmocka_unit_test(test_open_calls), cmocka_unit_test(test_fork_of_another_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
