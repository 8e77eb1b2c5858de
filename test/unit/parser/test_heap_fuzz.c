/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Random programs and the heap tracker, which sees only their events. It must count the same as the
 * machine that ran them (test/support/heap_machine.h).
 */
#include "parser/heap/heap_model.h"
#include "parser/heap/heap_table.h"
#include "test/support/heap_machine.h"

#include <stdlib.h>

static int compare_sequence(const void *a, const void *b)
{
	uint64_t x = ((const struct heap_block *)a)->allocated.sequence;
	uint64_t y = ((const struct heap_block *)b)->allocated.sequence;

	return (x > y) - (x < y);
}

static struct heap_block *list_truly_held(const struct machine *m, size_t *ret_nr)
{
	struct heap_block *list = calloc(m->nr_dead + NR_PROCESSES * NR_ADDRESSES, sizeof(*list));

	assert_non_null(list);
	*ret_nr = 0;
	for (size_t i = 0; i < m->nr_dead; i++)
		list[(*ret_nr)++] = m->dead[i];
	for (int i = 0; i < NR_PROCESSES; i++) {
		const struct memory *memory = &m->memories[i];

		for (int j = 0; memory->nr_users > 0 && j < NR_ADDRESSES; j++) {
			if (memory->blocks[j].state == HELD && !memory->blocks[j].b.inherited)
				list[(*ret_nr)++] = memory->blocks[j].b;
		}
	}
	qsort(list, *ret_nr, sizeof(*list), compare_sequence);
	return list;
}

static void compare_held(struct machine *m)
{
	const struct heap_block *held;
	size_t nr_true, nr = feed_held(&m->feed, &held);
	struct heap_block *truth = list_truly_held(m, &nr_true);

	assert_int_equal(nr, nr_true);
	for (size_t i = 0; i < nr; i++) {
		assert_int_equal(held[i].address, truth[i].address);
		assert_int_equal(held[i].size_bytes, truth[i].size_bytes);
		assert_int_equal(held[i].size_known, truth[i].size_known);
		assert_int_equal(held[i].allocated.sequence, truth[i].allocated.sequence);
		assert_int_equal(held[i].allocated.time_ns, truth[i].allocated.time_ns);
		assert_int_equal(held[i].allocated.pid, truth[i].allocated.pid);
		assert_int_equal(held[i].allocated.tid, truth[i].allocated.tid);
		assert_ptr_equal(held[i].allocated.schema, truth[i].allocated.schema);
	}
	free(truth);
}

static void compare_counts(struct machine *m, bool at_end)
{
	const struct heap_tracker_stats *seen = feed_stats(&m->feed);

	assert_int_equal(seen->allocations, m->truth.allocations);
	assert_int_equal(seen->allocated_bytes, m->truth.allocated_bytes);
	assert_int_equal(seen->frees, m->truth.frees);
	assert_int_equal(seen->freed_bytes, m->truth.freed_bytes);
	assert_int_equal(seen->null_frees, m->truth.null_frees);
	assert_int_equal(seen->thread_exit_frees, m->truth.thread_exit_frees);
	assert_int_equal(seen->blocks_unlocated, m->truth.blocks_unlocated);
	assert_int_equal(seen->blocks_dropped_by_exec, m->truth.blocks_dropped_by_exec);
	if (!at_end) /* an open call may be counted by its plan, not yet by its events */
		return;
	for (int i = 0; i < ANOMALY_NR_KINDS; i++)
		assert_int_equal(seen->anomalies[i], m->truth.anomalies[i]);
	assert_int_equal(seen->returns_without_entry, m->truth.returns_without_entry);
	assert_int_equal(seen->entries_without_return, m->truth.entries_without_return);
}

static void run_machine(uint64_t seed, bool callers, bool lossy, int nr_steps)
{
	struct machine *m = calloc(1, sizeof(*m));

	assert_non_null(m);
	machine_init(m, seed, callers, lossy);
	for (int i = 1; i <= nr_steps; i++) {
		machine_step(m);
		if (i % 5000 == 0) {
			compare_counts(m, false);
			compare_held(m);
		}
	}
	machine_exit_all(m);
	assert_int_equal(heap_tracker_settle_exits(m->feed.tracker), 0);
	feed_finish(&m->feed);
	compare_counts(m, true);
	compare_held(m);
	assert_int_equal(m->shown, 0); /* whether released or ended by an exit */
	machine_deinit(m);
	free(m);
}

#define NR_STEPS 120000 /* on each of nine machines: a million in all */

static void callers_known(void **state)
{
	for (uint64_t seed = 1; seed <= 3; seed++)
		run_machine(seed * 0x9e3779b97f4a7c15u, true, false, NR_STEPS);
}

static void callers_unknown(void **state)
{
	for (uint64_t seed = 4; seed <= 6; seed++)
		run_machine(seed * 0x9e3779b97f4a7c15u, false, false, NR_STEPS);
}

static void events_lost(void **state)
{
	for (uint64_t seed = 7; seed <= 9; seed++)
		run_machine(seed * 0x9e3779b97f4a7c15u, true, true, NR_STEPS);
}

static void churn_does_not_grow_the_heap(void **state)
{
	struct shared_memory memory = {0};
	struct heap *heap = heap_create(&memory);
	struct heap_op op = {0}, released;
	struct heap_block block = {0}, ret;

	assert_non_null(heap);
	for (uint64_t i = 1; i <= 300000; i++) {
		op.sequence = i;
		block.address = i * 16;
		assert_int_equal(heap_alloc(heap, &block, &ret), HEAP_OK);
		assert_int_equal(heap_release(heap, block.address, &op, &ret, &released), HEAP_OK);
		assert_true(heap->nr_releases <= HEAP_MAX_RELEASES);
	}
	assert_int_equal(heap_nr_blocks(heap), 0);
	heap_destroy(heap);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(callers_known),
		cmocka_unit_test(callers_unknown),
		cmocka_unit_test(events_lost),
		cmocka_unit_test(churn_does_not_grow_the_heap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
