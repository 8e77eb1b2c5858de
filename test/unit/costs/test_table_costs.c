/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Recordings and leaks files that someone made up, so that tables of what they name are slow. */
#include "common/clock.h"
#include "common/scope.h"
#include "parser/analysis/memory_usage.h"
#include "plot/leaks/leak_set.h"
#include "test/unit/costs/prepared_keys.h"
#include "unwind/stacks/stack_store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>
#include <cmocka.h>

#define NR 30000
/* It takes about as long as ordinary ones; a hundred times that, if each looks at all. */
#define MAX_LONGER 10

static uint32_t ordinary[NR], prepared[NR];

static int choose_numbers(void **state)
{
	uint32_t number = 0;

	for (size_t nr = 0; nr < NR; nr++) {
		ordinary[nr] = 1000 + (uint32_t)nr;
		do
			number++;
		while (!is_prepared(number));
		prepared[nr] = number;
	}
	return 0;
}

/* The CPU time of @run, in nanoseconds. */
static uint64_t time_of(void (*run)(const uint32_t *numbers), const uint32_t *numbers)
{
	uint64_t began_ns = clock_process_ns();

	run(numbers);
	return clock_process_ns() - began_ns;
}

static void assert_numbers_do_not_matter(void (*run)(const uint32_t *numbers))
{
	uint64_t ordinary_ns = time_of(run, ordinary), took_ns = time_of(run, prepared);

	print_message("%.1f ms, and %.1f ms\n", (double)ordinary_ns / 1e6, (double)took_ns / 1e6);
	assert_true(took_ns < MAX_LONGER * ordinary_ns);
}

/* --- processes that map a file --- */

static void map_all(const uint32_t *numbers)
{
	struct stack_store *store;
	struct stack_mapping mapping = {.start = 0x10000, .len = 0x1000, .path = "/nowhere/a.so"};

	assert_int_equal(stack_store_create(NULL, &store), 0);
	for (size_t i = 0; i < NR; i++) {
		mapping.pid = (pid_t)numbers[i];
		assert_int_equal(stack_store_map(store, &mapping), 0);
	}
	stack_store_destroy(store);
}

static void pids_that_map_files(void **state)
{
	assert_numbers_do_not_matter(map_all);
}

/* --- samples of memory --- */

#define NR_SAMPLES 300000

static void sample_all(const uint32_t *numbers)
{
	struct memory_usage *usage = memory_usage_create();
	struct heap_tracker *heaps;

	assert_non_null(usage);
	assert_int_equal(heap_tracker_create(NULL, &heaps), 0);
	for (size_t i = 0; i < NR_SAMPLES; i++) {
		const struct perf_sample sample = {.origin.pid = (pid_t)numbers[i % NR]};

		assert_int_equal(memory_usage_add(usage, &sample, heaps), 0);
	}
	heap_tracker_destroy(heaps);
	memory_usage_destroy(usage);
}

static void pids_of_memory_samples(void **state)
{
	assert_numbers_do_not_matter(sample_all);
}

/* --- a leaks file --- */

static FILE *begin_file(void)
{
	FILE *file = fdopen(memfd_create("file", MFD_CLOEXEC), "w+");

	assert_non_null(file);
	return file;
}

static void read_leaks(const uint32_t *numbers)
{
	FILE *file = begin_file();
	struct leak_set set;
	char path[64];

	fprintf(file, "# leaks 1\n# summary events=1000 start=10.000000000 end=70.000000000\n");
	for (size_t i = 0; i < NR; i++)
		fprintf(file, "leak 64 0x1 11.000000000 10 7 7 a malloc %u\n", numbers[i]);
	assert_int_equal(fflush(file), 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fileno(file));
	assert_int_equal(leak_set_init(&set, path, NULL), 0);
	assert_int_equal(set.nr_points, NR);
	leak_set_deinit(&set);
	assert_int_equal(fclose(file), 0);
}

static void stacks_in_a_leaks_file(void **state)
{
	assert_numbers_do_not_matter(read_leaks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pids_that_map_files),
		cmocka_unit_test(pids_of_memory_samples),
		cmocka_unit_test(stacks_in_a_leaks_file),
	};

	return cmocka_run_group_tests(tests, choose_numbers, NULL);
}
