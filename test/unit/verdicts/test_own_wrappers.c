// SPDX-License-Identifier: GPL-2.0-or-later
/* Simulated programs with wrappers of their own, and with functions that only look like one. */
#include "parser/statistics/own_wrappers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define MAX_SITES  64
#define MAX_DEPTH  6
#define NR_CALLERS 12

static const char libc[] = "/lib/libc.so.6", server[] = "/bin/server";

struct program {
	struct site sites[MAX_SITES];
	bool leaks[MAX_SITES];
	struct stack_frame frames[MAX_SITES][MAX_DEPTH];
	size_t nr_frames[MAX_SITES];
	size_t nr;
	char callers[MAX_SITES][16];
};

static int frames_of(void *stacks, uint32_t stack_id, struct stack_frame *ret, size_t max,
		     size_t *ret_nr)
{
	const struct program *program = stacks;

	*ret_nr = program->nr_frames[stack_id];
	assert_true(*ret_nr <= max);
	memcpy(ret, program->frames[stack_id], *ret_nr * sizeof(*ret));
	return 0;
}

static void add_frame(struct program *program, const char *function, const char *module,
		      uint64_t offset)
{
	size_t *nr = &program->nr_frames[program->nr];

	program->frames[program->nr][(*nr)++] = (struct stack_frame){
		.function = function, .module = module, .module_offset = offset};
}

/* Each name of @path calls the one before. The last one is called by caller number @caller. */
static void allocate(struct program *program, const char *const *path, size_t caller, uint64_t size,
		     bool leaks)
{
	size_t nr = program->nr;

	add_frame(program, "malloc", libc, 1);
	for (size_t i = 0; path[i]; i++)
		add_frame(program, path[i], server, (uint64_t)path[i][0]);
	snprintf(program->callers[nr], sizeof(program->callers[nr]), "handle_%zu", caller);
	add_frame(program, program->callers[nr], server, 1000 + caller);
	add_frame(program, "main", server, 5000);
	program->sites[nr] = (struct site){
		.stack_id = (uint32_t)nr,
		.allocations = 100,
		.frees = leaks ? 90 : 100,
		.allocated_bytes = 100 * size,
	};
	program->leaks[nr] = leaks;
	program->nr++;
}

#define PATH(...) ((const char *const[]){__VA_ARGS__, NULL})

static struct own_wrappers find(struct program *program, bool knows_leaks)
{
	const struct own_wrappers_input input = {
		.sites = program->sites,
		.nr_sites = program->nr,
		.leaks = knows_leaks ? program->leaks : NULL,
		.frames_of = frames_of,
		.stacks = program,
	};
	struct own_wrappers wrappers = {0};

	assert_int_equal(own_wrappers_find(&wrappers, &input), 0);
	return wrappers;
}

static void a_wrapper_is_found(void **state)
{
	struct program program = {0};
	struct own_wrappers wrappers;

	for (size_t i = 0; i < NR_CALLERS; i++)
		allocate(&program, PATH("grab"), i, 16 + 8 * i, i == 3);
	wrappers = find(&program, true);
	assert_int_equal(wrappers.nr, 1);
	assert_true(own_wrappers_has(&wrappers, "grab", server));
	assert_false(own_wrappers_has(&wrappers, "grab", libc));
	assert_false(own_wrappers_has(&wrappers, NULL, NULL));
	assert_false(own_wrappers_has(NULL, "grab", server));
}

static void a_wrapper_of_a_wrapper_is_found(void **state)
{
	struct program program = {0};
	struct own_wrappers wrappers;

	for (size_t i = 0; i < NR_CALLERS; i++) {
		allocate(&program, PATH("grab"), i, 16 + 8 * i, false);
		allocate(&program, PATH("grab", "obtain"), i, 20 + 8 * i, i == 3);
	}
	wrappers = find(&program, true);
	assert_true(own_wrappers_has(&wrappers, "grab", server));
	assert_true(own_wrappers_has(&wrappers, "obtain", server));
	assert_int_equal(wrappers.nr, 2);
}

/* It forgets its objects, whoever calls it. */
static void a_factory_that_leaks_is_none(void **state)
{
	struct program program = {0};

	for (size_t i = 0; i < NR_CALLERS; i++)
		allocate(&program, PATH("make"), i, 16 + 8 * i, true);
	assert_int_equal(find(&program, true).nr, 0);
	for (size_t i = 0; i < NR_CALLERS; i++)
		program.sites[i].frees = 0;
	assert_int_equal(find(&program, false).nr, 0);
	/* Other stacks, which do not leak, change nothing. */
	for (size_t i = 0; i < NR_CALLERS; i++)
		allocate(&program, PATH("other"), i, 64, false);
	assert_int_equal(find(&program, true).nr, 0);
}

static void a_factory_of_objects_is_none(void **state)
{
	struct program program = {0};

	/* Its name is of any length, but the objects are of one. */
	for (size_t i = 0; i < NR_CALLERS; i++) {
		allocate(&program, PATH("session_new"), i, 96, false);
		allocate(&program, PATH("session_new"), i, 10 + i, false);
		program.frames[program.nr - 1][1].module_offset++;
	}
	assert_int_equal(find(&program, true).nr, 0);
}

static void few_callers_or_allocations_are_none(void **state)
{
	struct program program = {0};

	for (size_t i = 0; i < 7; i++)
		allocate(&program, PATH("grab"), i, 16 + 8 * i, false);
	assert_int_equal(find(&program, true).nr, 0);
	for (size_t i = 7; i < NR_CALLERS; i++)
		allocate(&program, PATH("grab"), i, 16 + 8 * i, false);
	assert_int_equal(find(&program, true).nr, 1);
	/* Most allocations are elsewhere. */
	allocate(&program, PATH("read_line"), 0, 80, false);
	program.sites[program.nr - 1].allocations = 100000;
	program.sites[program.nr - 1].allocated_bytes = 8000000;
	assert_int_equal(find(&program, true).nr, 0);
}

/* A place without a name in each caller: they may all be one function. */
static void callers_without_names_are_one(void **state)
{
	struct program program = {0};

	for (size_t i = 0; i < NR_CALLERS; i++) {
		allocate(&program, PATH("grab"), i, 16 + 8 * i, false);
		program.frames[i][2].function = NULL;
	}
	assert_int_equal(find(&program, true).nr, 0);
}

static void inlined_wrappers_are_found_by_their_line(void **state)
{
	struct program program = {0};

	for (size_t i = 0; i < NR_CALLERS; i++) {
		allocate(&program, PATH("grab"), i, 16 + 8 * i, false);
		program.frames[i][1].module_offset = 1000 + i;
		program.frames[i][1].inlined = true;
		program.frames[i][1].line = 12;
	}
	assert_int_equal(find(&program, true).nr, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_wrapper_is_found),
		cmocka_unit_test(a_wrapper_of_a_wrapper_is_found),
		cmocka_unit_test(a_factory_that_leaks_is_none),
		cmocka_unit_test(a_factory_of_objects_is_none),
		cmocka_unit_test(few_callers_or_allocations_are_none),
		cmocka_unit_test(callers_without_names_are_one),
		cmocka_unit_test(inlined_wrappers_are_found_by_their_line),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
