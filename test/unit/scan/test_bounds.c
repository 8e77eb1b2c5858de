/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory that a hostile process has made up so that analysing it takes long. Each case takes a
 * second at most; what it must not do, minutes to years.
 */
#include "scan/roots/thread_stacks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <cmocka.h>

#define MAX_CPU_S 60

#define START	  0x7f0000000000ull
#define PAGE	  SCAN_PAGE_SIZE

/* A process with one mapping, which is not of a file. */
static void init(struct snapshot *ret, uint64_t size_bytes)
{
	snapshot_init(ret);
	ret->regions = calloc(1, sizeof(*ret->regions));
	assert_non_null(ret->regions);
	ret->nr_regions = 1;
	ret->regions[0] = (struct scan_region){
		.start = START,
		.end = START + size_bytes,
		.is_readable = true,
		.is_writable = true,
		.path = strdup(""),
	};
	assert_int_equal(scan_region_reserve(&ret->regions[0], size_bytes), 0);
}

static void add_run(struct snapshot *snapshot, uint64_t start, uint64_t end)
{
	assert_int_equal(scan_region_add_run(&snapshot->regions[0], start, end), 0);
}

static void set(struct snapshot *snapshot, uint64_t address, uint64_t word)
{
	memcpy(snapshot->regions[0].bytes + (address - START), &word, sizeof(word));
}

/* --- ended threads --- */

#define NR_THREADS  30000ull
#define STACK_BYTES 0x5000ull
#define LIST_AT	    704ull  /* in struct pthread */
#define BLOCK_AT    1680ull /* in struct pthread */

static uint64_t control_of(uint64_t i)
{
	return START + i * STACK_BYTES + STACK_BYTES - PAGE;
}

/* The list's node, and its neighbours. */
static void link(struct snapshot *snapshot, uint64_t node, uint64_t next)
{
	set(snapshot, node, next);
	set(snapshot, next + 8, node);
}

static void many_threads_have_ended(void **state)
{
	uint64_t head = START + NR_THREADS * STACK_BYTES;
	struct thread_stacks stacks;
	struct snapshot snapshot;

	init(&snapshot, NR_THREADS * STACK_BYTES + PAGE);
	for (uint64_t i = 0; i < NR_THREADS; i++) {
		uint64_t control = control_of(i);

		set(&snapshot, control, control);
		set(&snapshot, control + 16, control);
		set(&snapshot, control + BLOCK_AT, START + i * STACK_BYTES);
		set(&snapshot, control + BLOCK_AT + 8, STACK_BYTES);
		link(&snapshot, i ? control_of(i - 1) + LIST_AT : head, control + LIST_AT);
		add_run(&snapshot, control, control + PAGE);
	}
	link(&snapshot, control_of(NR_THREADS - 1) + LIST_AT, head);
	add_run(&snapshot, head, head + PAGE);
	assert_int_equal(thread_stacks_find(&stacks, &snapshot), 0);
	assert_int_equal(stacks.nr, NR_THREADS);
	assert_true(stacks.stacks[0].waits_for_join);
	thread_stacks_deinit(&stacks);
	/* The list breaks: none of them is known to be a thread. */
	set(&snapshot, control_of(NR_THREADS / 2) + LIST_AT, 0);
	assert_int_equal(thread_stacks_find(&stacks, &snapshot), 0);
	assert_int_equal(stacks.nr, 0);
	thread_stacks_deinit(&stacks);
	snapshot_deinit(&snapshot);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(many_threads_have_ended),
	};
	const struct rlimit limit = {MAX_CPU_S, MAX_CPU_S};

	setrlimit(RLIMIT_CPU, &limit);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
