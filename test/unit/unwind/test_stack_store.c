/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tests address spaces and interning with files that do not exist, so that positions are offsets in
 * the file.
 */
#include "unwind/stacks/stack_store.h"
#include "unwind/stacks/stack_table.h"

#include "common/scope.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define PAGE	0x1000ull
#define LIB_A	"/nowhere/a.so"
#define LIB_B	"/nowhere/b.so"
#define PROGRAM "/nowhere/program"

static int setup(void **state)
{
	return stack_store_create(NULL, (struct stack_store **)state);
}

static int teardown(void **state)
{
	stack_store_destroy(*state);
	return 0;
}

static void map(struct stack_store *store, pid_t pid, uint64_t start, uint64_t len,
		uint64_t file_offset, const char *path)
{
	struct stack_mapping mapping = {
		.pid = pid,
		.start = start,
		.len = len,
		.file_offset = file_offset,
		.path = path,
	};

	assert_int_equal(stack_store_map(store, &mapping), 0);
}

static uint32_t add(struct stack_store *store, pid_t pid, const uint64_t *addresses, size_t nr)
{
	uint32_t id = 12345;

	assert_int_equal(stack_store_add_callchain(store, pid, addresses, nr, &id), 0);
	return id;
}

static struct stack_frame frame_at(struct stack_store *store, uint32_t id, size_t index)
{
	struct stack_frame frame;

	assert_int_equal(stack_store_frame(store, id, index, &frame), 0);
	return frame;
}

/* The position of @address of @pid: "path" and offset, or NULL. */
static void assert_place(struct stack_store *store, pid_t pid, uint64_t address, const char *path,
			 uint64_t offset)
{
	struct stack_frame frame = frame_at(store, add(store, pid, &address, 1), 0);

	if (!path) {
		assert_null(frame.module);
		return;
	}
	assert_non_null(frame.module);
	assert_string_equal(frame.module, path);
	assert_int_equal(frame.module_offset, offset);
}

static void ids_are_dense(void **state)
{
	static const uint64_t one[] = {1, 2, 3}, other[] = {1, 2, 4};
	struct stack_store *store = *state;

	assert_int_equal(add(store, 1, one, 0), STACK_NONE);
	assert_int_equal(add(store, 1, one, 3), 1);
	assert_int_equal(add(store, 1, other, 3), 2);
	assert_int_equal(add(store, 1, one, 2), 3);
	assert_int_equal(add(store, 1, one, 3), 1);
	assert_int_equal(add(store, 2, other, 3), 2);
	assert_int_equal(stack_store_nr_frames(store, 0), 0);
	assert_int_equal(stack_store_nr_frames(store, 2), 3);
	assert_int_equal(stack_store_nr_frames(store, 4), 0);
	assert_int_equal(frame_at(store, 2, 2).address, 4);

	struct stack_frame frame;
	assert_int_equal(stack_store_frame(store, 2, 3, &frame), -EINVAL);
	assert_int_equal(stack_store_frame(store, 0, 0, &frame), -EINVAL);
	assert_int_equal(stack_store_frame(store, UINT32_MAX, 0, &frame), -EINVAL);
}

static void same_place_same_id(void **state)
{
	struct stack_store *store = *state;
	uint64_t in_one[] = {0x10123, 0x20456}, in_two[] = {0x70123, 0x90456};

	map(store, 1, 0x10000, PAGE, 0, LIB_A);
	map(store, 1, 0x20000, PAGE, 0, PROGRAM);
	map(store, 2, 0x70000, PAGE, 0, LIB_A);
	map(store, 2, 0x90000, PAGE, 0, PROGRAM);
	uint32_t id = add(store, 1, in_one, 2);
	assert_int_equal(add(store, 2, in_two, 2), id);

	/*
	 * An unrelated mapping changes nothing. In another process the same addresses have another
	 * meaning.
	 */
	map(store, 1, 0x50000, PAGE, 0, LIB_B);
	assert_int_equal(add(store, 1, in_one, 2), id);
	assert_int_not_equal(add(store, 3, in_one, 2), id);
	map(store, 1, 0x10000, PAGE, 0, LIB_B);
	assert_int_not_equal(add(store, 1, in_one, 2), id);
	map(store, 1, 0x10000, PAGE, 0, LIB_A);
	assert_int_equal(add(store, 1, in_one, 2), id);
}

static void newer_mappings_displace_older(void **state)
{
	struct stack_store *store = *state;

	map(store, 1, 0x1000, 8 * PAGE, 0x40000, LIB_A);
	map(store, 1, 0x3000, 2 * PAGE, 0, LIB_B);
	assert_place(store, 1, 0xfff, NULL, 0);
	assert_place(store, 1, 0x1000, LIB_A, 0x40000);
	assert_place(store, 1, 0x2fff, LIB_A, 0x41fff);
	assert_place(store, 1, 0x3000, LIB_B, 0);
	assert_place(store, 1, 0x4fff, LIB_B, 0x1fff);
	assert_place(store, 1, 0x5000, LIB_A, 0x44000);
	assert_place(store, 1, 0x8fff, LIB_A, 0x47fff);
	assert_place(store, 1, 0x9000, NULL, 0);

	map(store, 1, 0x2000, 2 * PAGE, 0, "//anon");
	assert_place(store, 1, 0x1fff, LIB_A, 0x40fff);
	assert_place(store, 1, 0x2000, NULL, 0);
	assert_place(store, 1, 0x3fff, NULL, 0);
	assert_place(store, 1, 0x4000, LIB_B, 0x1000);
}

/* Compares random mappings in 64 pages with an array of the pages. */
static void mappings_match_a_page_table(void **state)
{
	static const char *const paths[] = {LIB_A, LIB_B, PROGRAM, "[heap]"};
	struct stack_store *store = *state;
	struct {
		const char *path;
		uint64_t offset;
	} pages[64] = {{0}};
	uint32_t random = 1;

	for (int round = 0; round < 500; round++) {
		random = random * 1664525 + 1013904223;
		size_t start = (random >> 8) % 64, len = 1 + (random >> 16) % (64 - start);
		size_t path = (random >> 24) % 4, offset = (random >> 28) * PAGE;

		map(store, 1, start * PAGE, len * PAGE, offset, paths[path]);
		for (size_t i = 0; i < len; i++) {
			pages[start + i].path = path < 3 ? paths[path] : NULL;
			pages[start + i].offset = offset + i * PAGE;
		}
		for (size_t i = 0; i < 64; i++)
			assert_place(store, 1, i * PAGE + round, pages[i].path,
				     pages[i].offset + (uint64_t)round);
	}
}

static void return_addresses_belong_to_their_call(void **state)
{
	struct stack_store *store = *state;
	uint64_t chain[] = {0x2000, 0x2000, 0x3000};

	map(store, 1, 0x1000, PAGE, 0, LIB_A);
	map(store, 1, 0x2000, PAGE, 0, LIB_B);
	uint32_t id = add(store, 1, chain, 3);
	assert_string_equal(frame_at(store, id, 0).module, LIB_B);
	assert_int_equal(frame_at(store, id, 0).module_offset, 0);
	assert_string_equal(frame_at(store, id, 1).module, LIB_A);
	assert_int_equal(frame_at(store, id, 1).module_offset, 0x1000);
	assert_string_equal(frame_at(store, id, 2).module, LIB_B);
	assert_int_equal(frame_at(store, id, 2).module_offset, 0x1000);
	assert_int_equal(frame_at(store, id, 2).address, 0x3000);

	/* A return probe's trampoline in the place of a return address. */
	uint64_t trampoline[] = {0x1234, 0x7fffffffe000};
	map(store, 1, 0x7fffffffe000, PAGE, 0, "[uprobes]");
	id = add(store, 1, trampoline, 2);
	assert_string_equal(frame_at(store, id, 1).module, "[uprobes]");
	assert_int_equal(frame_at(store, id, 1).module_offset, 0);
}

/* Of a call, the place is where it returns to, which may be in no file, or in another one. */
static void places_are_offsets_in_files(void **state)
{
	struct stack_store *store = *state;
	const struct stack_mapping mapping = {
		.pid = 1,
		.start = 0x1000,
		.len = PAGE,
		.file_offset = 0x40000,
		.path = LIB_A,
		.build_id = {0xab, 0xcd, 0},
		.build_id_size = 3,
	};
	uint64_t chain[] = {0x1234, 0x2000, 0x2001, 0x3010, 0x4010, 0x9000, STACK_TRUNCATED};
	struct stack_place place;
	uint32_t id;

	assert_int_equal(stack_store_map(store, &mapping), 0);
	map(store, 1, 0x2000, PAGE, 0x7000, LIB_B);
	map(store, 1, 0x3000, PAGE, 0, "//anon");
	map(store, 1, 0x4000, PAGE, 0, "[vdso]");
	id = add(store, 1, chain, ARRAY_SIZE(chain));
	assert_int_equal(stack_store_place(store, id, 0, &place), 0);
	assert_string_equal(place.path, LIB_A);
	assert_int_equal(place.file_offset, 0x40234);
	assert_int_equal(place.build_id_size, 3);
	assert_memory_equal(place.build_id, mapping.build_id, 3);
	/* The call is the last instruction of the file. */
	assert_int_equal(stack_store_place(store, id, 1, &place), 0);
	assert_string_equal(place.path, LIB_A);
	assert_int_equal(place.file_offset, 0x41000);
	assert_int_equal(stack_store_place(store, id, 2, &place), 0);
	assert_string_equal(place.path, LIB_B);
	assert_int_equal(place.file_offset, 0x7001);
	assert_int_equal(place.build_id_size, 0);
	for (size_t i = 3; i < ARRAY_SIZE(chain); i++) {
		assert_int_equal(stack_store_place(store, id, i, &place), 0);
		assert_null(place.path);
	}
	assert_int_equal(stack_store_place(store, id, ARRAY_SIZE(chain), &place), -EINVAL);
	assert_int_equal(stack_store_place(store, STACK_NONE, 0, &place), -EINVAL);
}

static void processes_copy_and_forget(void **state)
{
	struct stack_store *store = *state;

	map(store, 10, 0x1000, PAGE, 0, LIB_A);
	assert_int_equal(stack_store_fork(store, 11, 10), 0);
	assert_place(store, 11, 0x1234, LIB_A, 0x234);

	/* Each process changes only its own mappings. */
	map(store, 10, 0x1000, PAGE, 0, LIB_B);
	assert_place(store, 10, 0x1234, LIB_B, 0x234);
	assert_place(store, 11, 0x1234, LIB_A, 0x234);
	map(store, 11, 0x5000, PAGE, 0, PROGRAM);
	assert_place(store, 10, 0x5000, NULL, 0);

	stack_store_exec(store, 11);
	assert_place(store, 11, 0x1234, NULL, 0);
	assert_place(store, 10, 0x1234, LIB_B, 0x234);

	/* A new thread; a child of an unknown process, whose pid another process had. */
	assert_int_equal(stack_store_fork(store, 10, 10), 0);
	assert_place(store, 10, 0x1234, LIB_B, 0x234);
	assert_int_equal(stack_store_fork(store, 10, 99), 0);
	assert_place(store, 10, 0x1234, NULL, 0);
}

static void exited_processes_are_kept_a_while(void **state)
{
	struct stack_store *store = *state;

	map(store, 1, 0x1000, PAGE, 0, LIB_A);
	stack_store_exit(store, 1);
	stack_store_exit(store, 1);
	stack_store_exit(store, 2);
	assert_place(store, 1, 0x1234, LIB_A, 0x234);
	for (pid_t pid = 100; pid < 100 + 3000; pid++) {
		map(store, pid, 0x1000, PAGE, 0, LIB_B);
		stack_store_exit(store, pid);
	}
	assert_place(store, 1, 0x1234, NULL, 0);
	assert_place(store, 3099, 0x1234, LIB_B, 0x234);
}

static void absurd_mappings_are_harmless(void **state)
{
	static const char *const anonymous[] = {
		"",
		"//anon",
		"[heap]",
		"[stack]",
		"/memfd:x (deleted)",
		"/SYSV00",
		"x.so",
		"/dev/zero (deleted)",
		"anon_inode:[perf]",
	};
	struct stack_store *store = *state;
	struct stack_mapping none = {.pid = 1, .start = 0x1000, .len = PAGE};

	map(store, 1, UINT64_MAX - 10, 100, 0, LIB_A);
	map(store, 1, 0x1000, 0, 0, LIB_A);
	map(store, 1, 0x1000, UINT64_MAX, 0, LIB_A);
	assert_place(store, 1, UINT64_MAX - 5, NULL, 0);
	assert_place(store, 1, 0x1000, NULL, 0);
	assert_int_equal(stack_store_map(store, &none), 0);
	for (size_t i = 0; i < ARRAY_SIZE(anonymous); i++) {
		map(store, 1, 0x1000, PAGE, 0, anonymous[i]);
		assert_place(store, 1, 0x1000, NULL, 0);
	}
	map(store, 1, 0, UINT64_MAX, UINT64_MAX - 1, LIB_A);
	assert_place(store, 1, 5, LIB_A, 3);
	map(store, -1, 0x1000, PAGE, 0, LIB_A);
	assert_place(store, -1, 0x1000, LIB_A, 0);
}

static void long_chains_are_cut(void **state)
{
	static uint64_t chain[3 * STACK_MAX_FRAMES];
	struct stack_store *store = *state;

	for (size_t i = 0; i < ARRAY_SIZE(chain); i++)
		chain[i] = i;
	uint32_t id = add(store, 1, chain, ARRAY_SIZE(chain));
	assert_int_equal(stack_store_nr_frames(store, id), STACK_MAX_FRAMES);
	assert_int_equal(frame_at(store, id, STACK_MAX_FRAMES - 2).address, STACK_MAX_FRAMES - 2);
	assert_int_equal(frame_at(store, id, STACK_MAX_FRAMES - 1).address, STACK_TRUNCATED);
	assert_int_equal(add(store, 1, chain, STACK_MAX_FRAMES + 1), id);
	assert_int_not_equal(add(store, 1, chain, STACK_MAX_FRAMES), id);
}

static void assert_printed(const struct stack_frame *frame, const char *expected)
{
	_cleanup_free_ char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	assert_int_equal(stack_frame_print(frame, out), 0);
	fclose(out);
	assert_string_equal(text, expected);
}

static void frames_print_for_people_and_awk(void **state)
{
	struct stack_frame frame = {.address = 0x7f1234, .module_offset = 0x1234};

	assert_printed(&frame, "0x7f1234  (unknown)");
	frame.address = STACK_TRUNCATED;
	assert_printed(&frame, "(truncated: the stack is longer than the recorded part)");
	frame.address = STACK_INCOMPLETE;
	assert_printed(&frame, "(incomplete: the next frame is not known)");
	frame.address = STACK_ELSEWHERE;
	assert_printed(&frame, "(elsewhere: the caller is on another stack)");
	frame.address = 0x7f1234;
	frame.module = "/usr/lib/libx.so.1";
	assert_printed(&frame, "libx.so.1+0x1234  (/usr/lib/libx.so.1)");
	frame.function = "ns::f<int>";
	frame.function_offset = 0x1a;
	assert_printed(&frame, "ns::f<int>+0x1a  (/usr/lib/libx.so.1)");
	frame.file = "src/x.cc";
	frame.line = 12;
	assert_printed(&frame, "ns::f<int>+0x1a  src/x.cc:12  (/usr/lib/libx.so.1)");
	frame.function = NULL;
	frame.module = "[vdso]";
	frame.file = NULL;
	assert_printed(&frame, "[vdso]+0x1234  ([vdso])");
	frame.module = "/tmp/\033[2Jx\n";
	assert_printed(&frame, "\\x1b[2Jx\\x0a+0x1234  (/tmp/\\x1b[2Jx\\x0a)");
}

/* More chains than the cache holds: it is emptied, and its answers stay right. */
static void the_cache_is_bounded(void **state)
{
	static uint64_t addresses[STACK_MAX_FRAMES];
	const struct stack_chain chain = {1, addresses, ARRAY_SIZE(addresses)};
	struct stack_table table;
	uint32_t id, nr = 2 * STACK_CACHE_MAX_BYTES / sizeof(addresses) + 10, found = 0;
	uint64_t hash;

	stack_table_init(&table);
	for (uint32_t i = 1; i <= nr; i++) {
		addresses[0] = i;
		assert_false(stack_table_cache_find(&table, &chain, &hash, &id));
		stack_table_cache_add(&table, &chain, hash, i);
		assert_true(stack_table_cache_find(&table, &chain, &hash, &id));
		assert_int_equal(id, i);
		assert_true(table.cache_bytes <= STACK_CACHE_MAX_BYTES);
	}
	for (uint32_t i = 1; i <= nr; i++) {
		addresses[0] = i;
		if (!stack_table_cache_find(&table, &chain, &hash, &id))
			continue;
		assert_int_equal(id, i);
		found++;
	}
	assert_true(found > 0 && found < nr);
	stack_table_deinit(&table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(ids_are_dense, setup, teardown),
		cmocka_unit_test_setup_teardown(same_place_same_id, setup, teardown),
		cmocka_unit_test_setup_teardown(newer_mappings_displace_older, setup, teardown),
		cmocka_unit_test_setup_teardown(mappings_match_a_page_table, setup, teardown),
		cmocka_unit_test_setup_teardown(return_addresses_belong_to_their_call, setup,
						teardown),
		cmocka_unit_test_setup_teardown(places_are_offsets_in_files, setup, teardown),
		cmocka_unit_test_setup_teardown(processes_copy_and_forget, setup, teardown),
		cmocka_unit_test_setup_teardown(exited_processes_are_kept_a_while, setup, teardown),
		cmocka_unit_test_setup_teardown(absurd_mappings_are_harmless, setup, teardown),
		cmocka_unit_test_setup_teardown(long_chains_are_cut, setup, teardown),
		cmocka_unit_test(frames_print_for_people_and_awk),
		cmocka_unit_test(the_cache_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
