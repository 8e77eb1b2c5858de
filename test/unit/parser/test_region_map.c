/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Compares the map of regions with a model that keeps the origin of each page. */
#include "parser/heap/region_map.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static struct shared_memory memory;

#define PAGES 96
#define PAGE  4096ULL
#define BASE  0x7f0000000000ULL
#define STEPS 50000

struct model {
	uint64_t owner[PAGES]; /* the sequence number of its mmap; 0: not mapped */
	bool inherited[PAGES];
};

static uint32_t random_below(uint32_t *state, uint32_t limit)
{
	*state = *state * 1664525 + 1013904223;
	return (*state >> 8) % limit;
}

/* Collects the pages that were not inherited. */
static void note_own(void *context, const struct region *region)
{
	uint64_t *own = context;

	assert_false(region->inherited);
	for (uint64_t at = region->start; at < region->end; at += PAGE) {
		assert_int_equal(own[(at - BASE) / PAGE], 0);
		own[(at - BASE) / PAGE] = region->mapped.sequence;
	}
}

/* Regions are as long as possible: there are as many as runs of pages of one origin. */
static size_t nr_runs(const struct model *model)
{
	size_t nr = 0;

	for (size_t i = 0; i < PAGES; i++)
		nr += model->owner[i] && (i == 0 || model->owner[i] != model->owner[i - 1]);
	return nr;
}

/* The region with @address; an empty one if there is none. */
static struct region find(const struct region_map *map, uint64_t address)
{
	struct region_map *copy = region_map_copy(map);
	struct region_cuts cuts = {0};
	struct region found = {0};

	assert_non_null(copy);
	assert_int_equal(region_map_remove(copy, address, address + 1, &cuts), 0);
	if (cuts.nr)
		found = cuts.list[0].whole;
	region_cuts_deinit(&cuts);
	region_map_destroy(copy);
	return found;
}

static void compare(const struct region_map *map, const struct model *model)
{
	uint64_t own[PAGES] = {0};

	region_map_for_each_own(map, note_own, own);
	for (size_t i = 0; i < PAGES; i++) {
		assert_int_equal(find(map, BASE + i * PAGE).mapped.sequence, model->owner[i]);
		assert_int_equal(own[i], model->inherited[i] ? 0 : model->owner[i]);
	}
	assert_int_equal(region_map_nr(map), nr_runs(model));
}

/* Compares the removed parts with the model's pages. */
static void check_cuts(const struct region_cuts *cuts, const struct model *before,
		       const struct model *after)
{
	uint64_t taken[PAGES] = {0};

	for (size_t i = 0; i < cuts->nr; i++) {
		const struct region_cut *cut = &cuts->list[i];

		assert_true(cut->whole.start <= cut->start && cut->start < cut->end &&
			    cut->end <= cut->whole.end);
		assert_true(i == 0 || cuts->list[i - 1].end <= cut->start);
		for (uint64_t at = cut->start; at < cut->end; at += PAGE)
			taken[(at - BASE) / PAGE] = cut->whole.mapped.sequence;
	}
	for (size_t i = 0; i < PAGES; i++)
		assert_int_equal(taken[i],
				 before->owner[i] == after->owner[i] ? 0 : before->owner[i]);
}

static void take(struct region_map *map, struct model *model, uint64_t first, uint64_t nr,
		 struct region_cuts *cuts)
{
	const struct model before = *model;

	assert_int_equal(
		region_map_remove(map, BASE + first * PAGE, BASE + (first + nr) * PAGE, cuts), 0);
	for (uint64_t i = first; i < first + nr; i++) {
		model->owner[i] = 0;
		model->inherited[i] = false;
	}
	check_cuts(cuts, &before, model);
}

static void put(struct region_map *map, struct model *model, uint64_t first, uint64_t nr,
		uint64_t sequence)
{
	const struct region region = {
		.start = BASE + first * PAGE,
		.end = BASE + (first + nr) * PAGE,
		.mapped = {.sequence = sequence},
	};

	assert_int_equal(region_map_add(map, &region), 0);
	for (uint64_t i = first; i < first + nr; i++)
		model->owner[i] = sequence;
}

static void put_back(struct region_map *map, const struct region_cuts *cuts)
{
	for (size_t i = cuts->nr; i-- > 0;) {
		const struct region *whole = &cuts->list[i].whole;
		struct region_join join;

		assert_int_equal(region_map_put_back(map, &cuts->list[i], &join), 0);
		assert_int_equal(join.whole.start, whole->start);
		assert_int_equal(join.whole.end, whole->end);
	}
}

static void test_random(void **state)
{
	struct region_map *map = region_map_create(&memory);
	struct model model = {0};
	uint32_t random = 20240607;

	for (uint64_t step = 1; step <= STEPS; step++) {
		uint64_t first = random_below(&random, PAGES);
		uint64_t nr =
			1 +
			random_below(&random, 1 + random_below(&random, (uint32_t)(PAGES - first)));
		const struct model before = model;
		struct region_cuts cuts = {0};

		take(map, &model, first, nr, &cuts);
		switch (random_below(&random, 4)) {
		case 0: /* munmap */
			break;
		case 1: /* munmap that fails */
			put_back(map, &cuts);
			model = before;
			break;
		default: /* mmap */
			put(map, &model, first, nr, step);
		}
		region_cuts_deinit(&cuts);
		compare(map, &model);
	}
	region_map_destroy(map);
}

/* Later mappings stay, and the rest is restored around them. */
static void test_put_back_too_late(void **state)
{
	struct region_map *map = region_map_create(&memory);
	struct model model = {0};
	struct region_cuts cuts = {0};
	struct region_join join;

	put(map, &model, 0, 10, 1);
	take(map, &model, 3, 4, &cuts);
	put(map, &model, 4, 1, 2);
	assert_int_equal(region_map_put_back(map, &cuts.list[0], &join), 0);
	assert_int_equal(join.nr_parts, 0);
	compare(map, &model);
	region_cuts_deinit(&cuts);

	/* Part of the rests at its sides was unmapped since. */
	take(map, &model, 0, PAGES, &cuts);
	region_cuts_deinit(&cuts);
	put(map, &model, 0, 10, 3);
	take(map, &model, 3, 4, &cuts);
	{
		struct region_cuts others = {0};

		take(map, &model, 8, 1, &others);
		region_cuts_deinit(&others);
	}
	assert_int_equal(region_map_put_back(map, &cuts.list[0], &join), 0);
	assert_int_equal(join.nr_parts, 3);
	assert_int_equal(find(map, BASE + 3 * PAGE).start, BASE);
	assert_int_equal(find(map, BASE + 3 * PAGE).end, BASE + 8 * PAGE);
	region_cuts_deinit(&cuts);
	region_map_destroy(map);
}

static void test_fork(void **state)
{
	struct region_map *map = region_map_create(&memory), *child;
	struct model model = {0}, of_child;
	struct region_cuts cuts = {0};

	put(map, &model, 0, 10, 1);
	put(map, &model, 20, 10, 2);
	region_map_set_break(map, 4711);
	child = region_map_copy(map);
	assert_int_equal(region_map_break(child), 4711);
	of_child = model;
	for (size_t i = 0; i < PAGES; i++)
		of_child.inherited[i] = of_child.owner[i] != 0;
	compare(child, &of_child);
	take(child, &of_child, 5, 20, &cuts);
	put(child, &of_child, 6, 2, 3);
	compare(child, &of_child);
	compare(map, &model);

	assert_int_equal(region_map_bury(child), 0);
	for (size_t i = 0; i < PAGES; i++)
		if (of_child.inherited[i])
			of_child.owner[i] = 0;
	memset(of_child.inherited, 0, sizeof(of_child.inherited));
	compare(child, &of_child);
	region_cuts_deinit(&cuts);
	region_map_destroy(child);
	region_map_destroy(map);
}

struct fork {
	struct region_map *map; /* NULL: unused */
	struct model model;
};

static void change_at_random(struct fork *fork, uint32_t *random, uint64_t sequence)
{
	struct region_cuts cuts = {0};
	uint64_t first = random_below(random, PAGES);
	uint64_t nr = 1 + random_below(random, 4);

	if (first + nr > PAGES)
		nr = PAGES - first;
	take(fork->map, &fork->model, first, nr, &cuts);
	if (random_below(random, 3))
		put(fork->map, &fork->model, first, nr, sequence);
	region_cuts_deinit(&cuts);
}

/* Children and grandchildren; a change in one affects no other. */
static void test_random_forks(void **state)
{
	struct fork forks[6] = {0};
	uint32_t random = 7;

	for (uint64_t step = 1; step <= 20000; step++) {
		struct fork *fork = &forks[random_below(&random, 6)];
		struct fork *from = &forks[random_below(&random, 6)];

		if (!fork->map && from->map) {
			fork->map = region_map_copy(from->map);
			fork->model = from->model;
			for (size_t i = 0; i < PAGES; i++)
				fork->model.inherited[i] = fork->model.owner[i] != 0;
		} else if (!fork->map) {
			fork->map = region_map_create(&memory);
			fork->model = (struct model){0};
		} else if (random_below(&random, 60) == 0) {
			region_map_destroy(fork->map);
			fork->map = NULL;
			continue;
		}
		assert_non_null(fork->map);
		change_at_random(fork, &random, step);
		compare(fork->map, &fork->model);
		if (from->map)
			compare(from->map, &from->model);
	}
	for (size_t i = 0; i < 6; i++)
		region_map_destroy(forks[i].map);
	assert_int_equal(memory.bytes, 0);
}

static void test_bounds(void **state)
{
	struct region_map *map = region_map_create(&memory);
	const struct region all = {.start = 0, .end = UINT64_MAX};
	struct region_cuts cuts = {0};

	assert_int_equal(find(map, 0).end, 0);
	assert_int_equal(region_map_add(map, &all), 0);
	assert_int_equal(region_map_add(map, &all), -EEXIST);
	assert_int_equal(region_map_remove(map, 10, 10, &cuts), 0);
	assert_int_equal(region_map_remove(map, 20, 10, &cuts), 0);
	assert_int_equal(cuts.nr, 0);
	assert_int_equal(region_map_remove(map, 0, 1, &cuts), 0);
	assert_int_equal(region_map_remove(map, UINT64_MAX - 1, UINT64_MAX, &cuts), 0);
	assert_int_equal(cuts.nr, 2);
	assert_int_equal(region_map_nr(map), 1);
	assert_int_equal(find(map, 1).end, UINT64_MAX - 1);
	region_cuts_deinit(&cuts);
	region_map_destroy(map);
	region_map_destroy(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random), cmocka_unit_test(test_put_back_too_late),
		cmocka_unit_test(test_fork),   cmocka_unit_test(test_random_forks),
		cmocka_unit_test(test_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
