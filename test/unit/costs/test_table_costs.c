/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Recordings and leaks files that someone made up, so that tables of what they name are slow. */
#include "common/clock.h"
#include "common/scope.h"
#include "parser/analysis/memory_usage.h"
#include "parser/perfdata/perf_input.h"
#include "plot/leaks/leak_set.h"
#include "test/support/frame_file.h"
#include "test/unit/costs/prepared_keys.h"
#include "unwind/stacks/stack_store.h"

#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#define NR 30000
/* It takes about as long as ordinary ones; a hundred times that, if each looks at all. */
#define MAX_LONGER 10

static uint32_t ordinary[NR], prepared[NR];

static void choose(bool (*is_chosen)(uint32_t number), uint32_t *ret)
{
	uint32_t number = 0;

	for (size_t nr = 0; nr < NR; nr++) {
		do
			number++;
		while (!is_chosen(number));
		ret[nr] = number;
	}
}

static bool is_prepared_number(uint32_t number)
{
	return is_prepared(number);
}

static int choose_numbers(void **state)
{
	for (size_t nr = 0; nr < NR; nr++)
		ordinary[nr] = 1000 + (uint32_t)nr;
	choose(is_prepared_number, prepared);
	return 0;
}

/* The CPU time of @run, in nanoseconds. */
static uint64_t time_of(void (*run)(const uint32_t *numbers), const uint32_t *numbers)
{
	uint64_t began_ns = clock_process_ns();

	run(numbers);
	return clock_process_ns() - began_ns;
}

static void assert_as_cheap(uint64_t ordinary_ns, uint64_t took_ns)
{
	print_message("%.1f ms, and %.1f ms\n", (double)ordinary_ns / 1e6, (double)took_ns / 1e6);
	assert_true(took_ns < MAX_LONGER * ordinary_ns);
}

static void assert_numbers_do_not_matter(void (*run)(const uint32_t *numbers))
{
	uint64_t ordinary_ns = time_of(run, ordinary);

	assert_as_cheap(ordinary_ns, time_of(run, prepared));
}

/* The same of numbers that make prepared keys. */
static void assert_keys_do_not_matter(bool (*is_chosen)(uint32_t number),
				      void (*run)(const uint32_t *numbers))
{
	static uint32_t chosen[NR];
	uint64_t ordinary_ns = time_of(run, ordinary);

	choose(is_chosen, chosen);
	assert_as_cheap(ordinary_ns, time_of(run, chosen));
}

static FILE *begin_file(void)
{
	FILE *file = fdopen(memfd_create("file", MFD_CLOEXEC), "w+");

	assert_non_null(file);
	return file;
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

/* --- perf script's text --- */

/* A sample of @pid, with a stack in a file. */
static void write_sample(FILE *text, uint32_t pid)
{
	fprintf(text,
		"a %u/%u [000] 1.000001: probe_libc:malloc: (7f30) arg1=0x20\n"
		"\t10 f+0x4 (/bin/a)\n\n",
		pid, pid);
}

static int skip_sample(void *context, const struct perf_sample *sample)
{
	return 0;
}

static void read_text(FILE *text)
{
	const struct perf_consumer consumer = {.on_sample = skip_sample};
	struct perf_input_stats stats = {0};

	assert_int_equal(fflush(text), 0);
	assert_int_equal(perf_input_read(fileno(text), "text", &consumer, &stats), 0);
	assert_int_equal(fclose(text), 0);
}

static void read_pids(const uint32_t *numbers)
{
	FILE *text = begin_file();

	for (size_t i = 0; i < NR; i++)
		write_sample(text, numbers[i]);
	read_text(text);
}

static void pids_in_a_text(void **state)
{
	assert_numbers_do_not_matter(read_pids);
}

/* Others fork, and execute a program. */
static void read_forks(const uint32_t *numbers)
{
	FILE *text = begin_file();

	for (size_t i = 0; i < NR / 2; i++)
		write_sample(text, numbers[i]);
	for (size_t i = 0; i < NR / 4; i++) {
		fprintf(text, "a 1 [000] 1.000002: PERF_RECORD_FORK(2:2):(1:1)\n");
		fprintf(text, "a 2/2 [000] 1.000003: PERF_RECORD_COMM exec: a:2/2\n");
	}
	read_text(text);
}

static void forks_beside_many_processes(void **state)
{
	assert_as_cheap(time_of(read_pids, ordinary), time_of(read_forks, ordinary));
}

/* A process with many files forks again and again. */
static void read_children(const uint32_t *numbers)
{
	FILE *text = begin_file();

	for (size_t i = 0; i < NR / 2; i++)
		fprintf(text,
			"a 1/1 [000] 1.000001: probe_libc:malloc: (7f30) arg1=0x%zx\n"
			"\t10 f+0x4 (/bin/%u)\n\n",
			i, numbers[i]);
	for (size_t i = 0; i < NR / 4; i++)
		fprintf(text, "a 1/1 [000] 1.000002: PERF_RECORD_FORK(2:2):(1:1)\n");
	read_text(text);
}

static void forks_with_many_files(void **state)
{
	assert_as_cheap(time_of(read_pids, ordinary), time_of(read_children, ordinary));
}

/* --- a leaks file --- */

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

/* --- files, and places in one --- */

static bool is_prepared_place(uint32_t number)
{
	const uint64_t place[2] = {1, number}; /* in the first file */

	return is_prepared(place);
}

static void name_places(const uint32_t *numbers)
{
	struct stack_store *store;

	assert_int_equal(stack_store_create(NULL, &store), 0);
	for (size_t i = 0; i < NR; i++)
		assert_int_equal(stack_store_name_place(store, "/nowhere/a.so", numbers[i], "f", 0),
				 0);
	stack_store_destroy(store);
}

static void places_that_are_named(void **state)
{
	assert_keys_do_not_matter(is_prepared_place, name_places);
}

/* A number's path, with zeros behind it. */
struct numbered_path {
	char text[32];
};

static struct numbered_path path_of(uint32_t number)
{
	struct numbered_path path = {"/nowhere/0000000000"};

	for (char *digit = path.text + strlen(path.text); number; number /= 10)
		*--digit = (char)('0' + number % 10);
	return path;
}

static bool is_prepared_path(uint32_t number)
{
	const struct numbered_path path = path_of(number);
	unsigned int hash;

	HASH_JEN(path.text, strlen(path.text) + 1, hash);
	return hash % 256 == 0;
}

static void name_files(const uint32_t *numbers)
{
	struct stack_store *store;

	assert_int_equal(stack_store_create(NULL, &store), 0);
	for (size_t i = 0; i < NR; i++)
		assert_int_equal(stack_store_name_place(store, path_of(numbers[i]).text, 0, "f", 0),
				 0);
	stack_store_destroy(store);
}

static void paths_of_files(void **state)
{
	assert_keys_do_not_matter(is_prepared_path, name_files);
}

static bool is_prepared_text(uint32_t number)
{
	const struct numbered_path path = path_of(number);
	unsigned int hash;

	HASH_JEN(path.text, strlen(path.text), hash);
	return hash % 256 == 0;
}

static void set_build_ids(const uint32_t *numbers)
{
	static const uint8_t build_id[20] = {1};
	struct stack_store *store;

	assert_int_equal(stack_store_create(NULL, &store), 0);
	for (size_t i = 0; i < NR; i++)
		assert_int_equal(stack_store_set_build_id(store, path_of(numbers[i]).text, build_id,
							  sizeof(build_id)),
				 0);
	stack_store_destroy(store);
}

static void paths_with_build_ids(void **state)
{
	assert_keys_do_not_matter(is_prepared_text, set_build_ids);
}

/* --- places in a file that has names for them --- */

#define CODE_BYTES (1u << 30)

static bool is_prepared_address(uint32_t number)
{
	const uint64_t address = number;

	return is_prepared(address);
}

static void look_up_all(const uint32_t *numbers)
{
	const uint64_t sizes[2] = {CODE_BYTES, CODE_BYTES}; /* in the file, in memory */
	uint8_t content[FRAME_FILE_MAX];
	size_t size = frame_file_make(&frame_entries[0], content);
	FILE *file = begin_file();
	struct stack_mapping mapping = {.pid = 1, .start = CODE_BYTES, .len = CODE_BYTES};
	struct stack_store *store;
	struct stack_frame frame;
	char path[64];
	uint32_t id;

	memcpy(content + sizeof(Elf64_Ehdr) + offsetof(Elf64_Phdr, p_filesz), sizes, sizeof(sizes));
	assert_int_equal(pwrite(fileno(file), content, size, 0), size);
	assert_int_equal(ftruncate(fileno(file), CODE_BYTES), 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fileno(file));
	mapping.path = path;
	assert_int_equal(stack_store_create(NULL, &store), 0);
	assert_int_equal(stack_store_map(store, &mapping), 0);
	for (size_t i = 0; i < NR; i++) {
		const uint64_t address = mapping.start + numbers[i];

		assert_int_equal(stack_store_add_callchain(store, 1, &address, 1, &id), 0);
		assert_int_equal(stack_store_frame(store, id, 0, &frame), 0);
		assert_int_equal(frame.module_offset, numbers[i]);
	}
	stack_store_destroy(store);
	assert_int_equal(fclose(file), 0);
}

static void places_that_are_looked_up(void **state)
{
	assert_keys_do_not_matter(is_prepared_address, look_up_all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pids_that_map_files),
		cmocka_unit_test(pids_of_memory_samples),
		cmocka_unit_test(pids_in_a_text),
		cmocka_unit_test(forks_beside_many_processes),
		cmocka_unit_test(forks_with_many_files),
		cmocka_unit_test(stacks_in_a_leaks_file),
		cmocka_unit_test(places_that_are_named),
		cmocka_unit_test(paths_of_files),
		cmocka_unit_test(paths_with_build_ids),
		cmocka_unit_test(places_that_are_looked_up),
	};

	return cmocka_run_group_tests(tests, choose_numbers, NULL);
}
