/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The points at which one probe sees a whole call, in code that was assembled for each rule
 * (test_single_trap_points.S, .frames.S). test_single_trap_calls.c compares them with real calls.
 */
#include "probes/x86/code_flow.h"
#include "probes/sites/single_trap_points.h"
#include "probes/x86/register_state.h"

#include "common/scope.h"
#include "test/support/code_cases.h"
#include "test/support/code_file.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct placement_kernel kernel = {.emulates_long_nops = false};

struct expected_point {
	uint64_t offset;
	int size_register, block_register;
	uint32_t frame_bytes;
	int32_t saved[SINGLE_TRAP_NR_SAVED];
};

struct points_case {
	const char *name; /* of the code */
	struct expected_point points[3];
	int nr_points;
};

static const struct points_case cases[] = {
	{"two_paths",
	 {{18, REGISTER_BX, REGISTER_AX, 8, {0, -1, -1, -1, -1, -1}},
	  {34, REGISTER_BX, REGISTER_AX, 8, {0, -1, -1, -1, -1, -1}}},
	 2},
	{"size_before_block",
	 {{4, REGISTER_DI, SINGLE_TRAP_NOWHERE, 8, {-1, -1, -1, -1, -1, -1}},
	  {12, SINGLE_TRAP_NOWHERE, REGISTER_AX, 8, {-1, -1, -1, -1, -1, -1}}},
	 2},
	{"failing_path",
	 {{17, REGISTER_BX, REGISTER_AX, 8, {0, -1, -1, -1, -1, -1}},
	  {28, REGISTER_BX, SINGLE_TRAP_IS_NULL, 8, {0, -1, -1, -1, -1, -1}}},
	 2},
	{"failing_jump",
	 {{17, REGISTER_BX, REGISTER_AX, 8, {0, -1, -1, -1, -1, -1}},
	  {34, REGISTER_BX, SINGLE_TRAP_IS_NULL, 8, {0, -1, -1, -1, -1, -1}}},
	 2},
	{"other_than_null", {}, 0},
	{"retried", {}, 0},
	{"retried_before", {{13, REGISTER_DI, REGISTER_AX, 0, {-1, -1, -1, -1, -1, -1}}}, 1},
	{"size_overwritten", {}, 0},
	{"size_half_written", {}, 0},
	{"size_moved", {{14, 10, REGISTER_AX, 0, {-1, -1, -1, -1, -1, -1}}}, 1},
	{"size_lost_in_call",
	 {{9, 10, SINGLE_TRAP_NOWHERE, 8, {-1, -1, -1, -1, -1, -1}},
	  {17, SINGLE_TRAP_NOWHERE, REGISTER_AX, 8, {-1, -1, -1, -1, -1, -1}}},
	 2},
	{"size_lost_in_system_call", {}, 0},
	{"spilled", {{16, REGISTER_BX, REGISTER_AX, 24, {16, -1, -1, -1, -1, -1}}}, 1},
	{"spilled_and_changed", {}, 0},
	{"spilled_somewhere", {}, 0},
	{"spilled_below", {}, 0},
	{"never_returns", {{11, REGISTER_BX, REGISTER_AX, 8, {0, -1, -1, -1, -1, -1}}}, 1},
	{"may_return", {}, 0},
	{"jump_to_table", {}, 0},
	{"jump_to_pointer", {}, 0},
	{"tail_call", {}, 0},
	{"tail_call_to_death", {{14, 10, REGISTER_AX, 0, {-1, -1, -1, -1, -1, -1}}}, 1},
	{"falls_off", {}, 0},
	{"two_returns", {{6, REGISTER_DI, REGISTER_AX, 0, {-1, -1, -1, -1, -1, -1}}}, 1},
	{"null_is_the_block", {{6, REGISTER_DI, REGISTER_AX, 0, {-1, -1, -1, -1, -1, -1}}}, 1},
	{"null_by_half", {}, 0},
	{"null_by_other_flags", {}, 0},
	{"null_of_before", {}, 0},
	{"second_point_follows",
	 {{23, REGISTER_DI, REGISTER_AX, 0, {-1, -1, -1, -1, -1, -1}},
	  {33, REGISTER_DI, REGISTER_AX, 0, {-1, -1, -1, -1, -1, -1}}},
	 2},
	{"aligned_stack", {}, 0},
	{"variable_stack", {}, 0},
	{"address_of_stack", {}, 0},
	{"stack_pointer_copied", {}, 0},
	{"frame_address_pushed", {}, 0},
	{"return_address_written", {}, 0},
	{"stack_lost", {}, 0},
	{"unbalanced", {}, 0},
	{"not_restored", {}, 0},
	{"restored_wrongly", {}, 0},
	{"frame_pointer", {{20, REGISTER_BX, REGISTER_AX, 40, {24, 32, -1, -1, -1, -1}}}, 1},
	{"frame_pointer_popped", {{21, REGISTER_BX, REGISTER_AX, 24, {0, 16, 8, -1, -1, -1}}}, 1},
	{"signed_bytes", {{29, REGISTER_DI, REGISTER_AX, 0, {-1, -1, -1, -1, -1, -1}}}, 1},
	{"deep_frame", {}, 0},
	{"breakpoint", {}, 0},
	{"old_system_call", {}, 0},
	{"entered_from_elsewhere", {}, 0},
	{"overlapping", {}, 0},
	{"prefixed_call", {}, 0},
	{"tls_call", {{15, REGISTER_BX, REGISTER_AX, 8, {0, -1, -1, -1, -1, -1}}}, 1},
	{"prefixed_jump", {}, 0},
	{"prefixed_return", {}, 0},
	{"transaction", {}, 0},
	{"enter", {}, 0},
	{"returns_and_pops", {}, 0},
	{"zero_and_unknown_meet", {}, 0},
	{"looped", {}, 0},
	{"saved_below", {}, 0},
	{"size_or_other",
	 {{6, REGISTER_DI, SINGLE_TRAP_NOWHERE, 0, {-1, -1, -1, -1, -1, -1}},
	  {19, SINGLE_TRAP_NOWHERE, REGISTER_AX, 0, {-1, -1, -1, -1, -1, -1}}},
	 2},
	{"block_or_other", {}, 0},
	{"either_block", {}, 0},
	{"block_before_move", {{3, REGISTER_DI, REGISTER_DX, 0, {-1, -1, -1, -1, -1, -1}}}, 1},
	{"system_call_result", {}, 0},
	{"stack_pointer_added", {}, 0},
	{"only_stepped", {}, 0},
	{"two_values", {}, 0},
};

/* Finds the points of the first @function_bytes of @code for the argument @size_arg. */
static int find_points(const uint8_t *code, size_t size_bytes, uint64_t function_bytes,
		       int size_arg, struct single_trap_point ret[SINGLE_TRAP_MAX_POINTS])
{
	const struct elf_function function = {
		.is_found = true, .offset = CODE_FILE_OFFSET, .size_bytes = function_bytes};
	struct code_file file;
	int nr;

	code_file_init(&file, code, size_bytes);
	nr = single_trap_points_find(&file.image, &function, size_arg, &kernel, ret);
	code_file_deinit(&file);
	return nr;
}

#define SIMPLE_POINT 6 /* of the code "simple" */

static int count_simple_points(const struct code_file *file)
{
	const struct code_case *simple = code_case_find("simple");
	const struct elf_function function = {
		.is_found = true, .offset = CODE_FILE_OFFSET, .size_bytes = code_case_size(simple)};
	struct single_trap_point points[SINGLE_TRAP_MAX_POINTS];
	int nr = single_trap_points_find(&file->image, &function, 0, &kernel, points);

	if (nr == 1)
		assert_int_equal(points[0].offset, SIMPLE_POINT);
	return nr;
}

/* A function's symbol after the first byte is another entry. */
static void inner_symbols_are_entries(void **state)
{
	const struct code_case *simple = code_case_find("simple");
	size_t size = code_case_size(simple);
	const struct {
		uint64_t offset;
		int type, nr_points;
	} symbols[] = {
		{0, STT_FUNC, 1},    {8, STT_FUNC, 0},	 {size - 1, STT_GNU_IFUNC, 0},
		{size, STT_FUNC, 1}, {8, STT_OBJECT, 1},
	};

	for (size_t i = 0; i < ARRAY_SIZE(symbols); i++) {
		Elf64_Sym table[2] = {{0},
				      {.st_name = 1,
				       .st_info = ELF64_ST_INFO(STB_GLOBAL, symbols[i].type),
				       .st_shndx = 1,
				       .st_value = CODE_FILE_OFFSET + symbols[i].offset,
				       .st_size = 1}};
		uint8_t code[64] = {0};
		struct code_file file;

		assert_true(2 * size <= sizeof(code));
		memcpy(code, simple->code, size);
		code_file_init(&file, code, 2 * size);
		assert_int_equal(count_simple_points(&file), 1);
		code_file_add_section(&file, ".symtab", SHT_SYMTAB, table, sizeof(table));
		assert_int_equal(count_simple_points(&file), symbols[i].nr_points);
		code_file_deinit(&file);
	}
}

/*
 * Makes frame information of the code from @offset on, with a table of landing pads if @letters has
 * an L.
 */
static void make_frame_info(uint8_t ret[48], const char *letters, uint8_t encoding, int32_t offset,
			    int32_t size_bytes)
{
	/* A CIE of 20 bytes after its length; an FDE of 20, which refers to it, 4 before its id */
	const int32_t fde[] = {20, 28, CODE_FILE_OFFSET + offset - (CODE_FILE_DATA_OFFSET + 32),
			       size_bytes};
	uint8_t *at = ret;

	memset(ret, 0, 48); /* nops, and the end */
	*at = 20;
	at += 8; /* its id is 0 */
	*at++ = 1;
	memcpy(at, letters, strlen(letters) + 1);
	at += strlen(letters) + 1;
	*at++ = 1;    /* the alignment of code, */
	*at++ = 0x78; /* of data: -8 */
	*at++ = 16;   /* the return address's column */
	*at++ = (uint8_t)(strlen(letters) - 1);
	for (const char *letter = letters + 1; *letter; letter++)
		*at++ = encoding;
	memcpy(ret + 24, fde, sizeof(fde));
	ret[40] = 4; /* bytes of a table's address, if there is one */
	ret[41] = strchr(letters, 'L') ? 16 : 0;
}

static void landing_pads_are_entries(void **state)
{
	const struct code_case *simple = code_case_find("simple");
	int32_t size = (int32_t)code_case_size(simple);
	const struct {
		const char *letters;
		uint8_t encoding;
		int32_t offset, size_bytes;
		int nr_points;
	} infos[] = {
		{"zR", 0x1b, 0, size, 1},	{"zLR", 0x1b, 0, size, 0},
		{"zPLR", 0x1b, 0, size, 0}, /* the personality's address is missing */
		{"zLR", 0x1b, size - 1, 16, 0}, {"zLR", 0x1b, size, 16, 1},
		{"zLR", 0x1b, -16, 16, 1},	{"zLR", 0x1b, -16, 17, 0},
		{"zLR", 0x00, size, 16, 0}, /* another encoding, not understood */
		{"zR", 0x00, size, 16, 0},
	};

	for (size_t i = 0; i < ARRAY_SIZE(infos); i++) {
		struct code_file file;
		uint8_t info[48];

		make_frame_info(info, infos[i].letters, infos[i].encoding, infos[i].offset,
				infos[i].size_bytes);
		code_file_init(&file, simple->code, code_case_size(simple));
		code_file_add_section(&file, ".eh_frame", SHT_PROGBITS, info, sizeof(info));
		if (count_simple_points(&file) != infos[i].nr_points)
			fail_msg("frame information %zu: not %d points", i, infos[i].nr_points);
		code_file_deinit(&file);
	}
}

static bool is_expected(const struct single_trap_point *point,
			const struct expected_point *expected)
{
	return point->offset == expected->offset &&
	       point->size_register == expected->size_register &&
	       point->block_register == expected->block_register &&
	       point->frame_bytes == expected->frame_bytes &&
	       memcmp(point->saved, expected->saved, sizeof(point->saved)) == 0;
}

static void each_rule_holds(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct points_case *test = &cases[i];
		const struct code_case *code = code_case_find(test->name);
		struct single_trap_point points[SINGLE_TRAP_MAX_POINTS];
		int nr = find_points(code->code, code_case_size(code),
				     code_case_function_size(code), 0, points);

		for (int j = 0; j < nr; j++)
			if (j >= test->nr_points || !is_expected(&points[j], &test->points[j]))
				fail_msg("%s: point %d at +0x%" PRIx64
					 ", size %d, block %d, frame %u",
					 test->name, j, points[j].offset, points[j].size_register,
					 points[j].block_register, points[j].frame_bytes);
		if (nr != test->nr_points)
			fail_msg("%s: %d points, but it should be %d", test->name, nr,
				 test->nr_points);
	}
}

static void the_size_is_any_argument(void **state)
{
	static const int registers[] = {7, 6, 2, 1, 8, 9};
	const struct code_case *simple = code_case_find("simple");
	size_t size = code_case_size(simple);
	struct single_trap_point points[SINGLE_TRAP_MAX_POINTS];

	for (int i = 0; i < 6; i++) {
		assert_int_equal(find_points(simple->code, size, size, i, points), 1);
		assert_int_equal(points[0].offset, SIMPLE_POINT);
		assert_int_equal(points[0].size_register, registers[i]);
		assert_int_equal(points[0].block_register, 0);
	}
	assert_int_equal(find_points(simple->code, size, size, 6, points), 0);
	assert_int_equal(find_points(simple->code, size, size, -1, points), 0);
}

static void unknown_sizes_have_no_points(void **state)
{
	static uint8_t code[CODE_FLOW_MAX_BYTES + 1];
	const struct code_case *known = code_case_find(cases[0].name);
	struct single_trap_point points[SINGLE_TRAP_MAX_POINTS];

	memcpy(code, known->code, code_case_size(known));
	assert_int_equal(find_points(code, sizeof(code), 0, 0, points), 0);
	assert_int_equal(find_points(code, sizeof(code), sizeof(code), 0, points), 0);
	assert_true(find_points(code, sizeof(code), code_case_function_size(known), 0, points) > 0);
}

/* A function that is cut off anywhere has no points after the cut. */
static void cut_off_code_is_survived(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct code_case *code = code_case_find(cases[i].name);

		for (uint64_t size = 0; size < code_case_function_size(code); size++) {
			struct single_trap_point points[SINGLE_TRAP_MAX_POINTS];
			int nr = find_points(code->code, code_case_size(code), size, 0, points);

			assert_in_range(nr, 0, SINGLE_TRAP_MAX_POINTS);
			for (int j = 0; j < nr; j++)
				assert_true(points[j].offset < size);
		}
	}
}

static uint32_t next_random(uint32_t *seed)
{
	*seed = *seed * 1103515245u + 12345u;
	return *seed >> 16;
}

/* The points of any code must be in it, in order, and have valid registers and frames. */
static void assert_sane(const struct single_trap_point *points, int nr, size_t size_bytes)
{
	assert_in_range(nr, 0, SINGLE_TRAP_MAX_POINTS);
	for (int i = 0; i < nr; i++) {
		assert_true(points[i].offset < size_bytes);
		assert_true(i == 0 || points[i].offset > points[i - 1].offset);
		assert_true(points[i].size_register >= SINGLE_TRAP_NOWHERE);
		assert_true(points[i].size_register < NR_REGISTERS);
		assert_true(points[i].block_register >= SINGLE_TRAP_IS_NULL);
		assert_true(points[i].block_register < NR_REGISTERS);
		assert_true(points[i].frame_bytes <= SINGLE_TRAP_MAX_FRAME_BYTES);
		for (int j = 0; j < SINGLE_TRAP_NR_SAVED; j++)
			assert_true(points[i].saved[j] == SINGLE_TRAP_UNCHANGED ||
				    (points[i].saved[j] >= 0 &&
				     (uint32_t)points[i].saved[j] < points[i].frame_bytes));
	}
}

static void random_bytes_are_survived(void **state)
{
	uint32_t seed = 4711;

	for (int round = 0; round < 2000; round++) {
		struct single_trap_point points[SINGLE_TRAP_MAX_POINTS];
		uint8_t code[256];

		for (size_t i = 0; i < sizeof(code); i++)
			code[i] = (uint8_t)next_random(&seed);
		assert_sane(points, find_points(code, sizeof(code), sizeof(code), 0, points),
			    sizeof(code));
	}
}

static void mutated_functions_are_survived(void **state)
{
	uint32_t seed = 815;

	for (int round = 0; round < 100; round++) {
		for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
			const struct code_case *original = code_case_find(cases[i].name);
			size_t size = code_case_size(original);
			struct single_trap_point points[SINGLE_TRAP_MAX_POINTS];
			uint8_t code[256];

			assert_true(size <= sizeof(code));
			memcpy(code, original->code, size);
			for (int j = 0; j < 3; j++)
				code[next_random(&seed) % size] = (uint8_t)next_random(&seed);
			assert_sane(points,
				    find_points(code, size, code_case_function_size(original), 0,
						points),
				    code_case_function_size(original));
		}
	}
}

/* Analysing much code takes bounded time, even if each instruction is reached in many ways. */
static void endless_branches_end(void **state)
{
	static uint8_t code[32768];
	struct single_trap_point points[SINGLE_TRAP_MAX_POINTS];

	for (size_t i = 0; i + 2 < sizeof(code); i += 2) {
		code[i] = 0x74; /* je, to and fro */
		code[i + 1] = i % 4 ? 0x7c : 0x84;
	}
	assert_sane(points, find_points(code, sizeof(code), sizeof(code), 0, points), sizeof(code));
	/* Nested calls, as deep as the file goes. */
	for (size_t i = 0; i + 10 < sizeof(code); i += 5)
		memcpy(code + i, (const uint8_t[]){0xe8, 0x05, 0x00, 0x00, 0x00}, 5);
	assert_sane(points, find_points(code, sizeof(code), 64, 0, points), 64);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_rule_holds),
		cmocka_unit_test(inner_symbols_are_entries),
		cmocka_unit_test(landing_pads_are_entries),
		cmocka_unit_test(the_size_is_any_argument),
		cmocka_unit_test(unknown_sizes_have_no_points),
		cmocka_unit_test(cut_off_code_is_survived),
		cmocka_unit_test(random_bytes_are_survived),
		cmocka_unit_test(mutated_functions_are_survived),
		cmocka_unit_test(endless_branches_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
