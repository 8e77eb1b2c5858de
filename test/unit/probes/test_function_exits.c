/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The exits of functions: code assembled for each rule (test_function_exits.S), landing pads
 * included; cut-off, mutated and random code; and all functions of this machine's libraries,
 * against objdump.
 */
#include "probes/sites/function_exits.h"
#include "test/support/code_cases.h"
#include "test/support/code_file.h"

#include "common/scope.h"

#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

struct exits_case {
	const char *name;  /* of the code, in test_function_exits.S */
	int nr;		   /* or -ENOTSUP */
	uint64_t exits[4]; /* in the code */
};

static const struct exits_case cases[] = {
	{"one_return", 1, {2}},
	{"two", 2, {5, 8}},
	{"rep_ret", 1, {0}},
	{"bytes_of_an_immediate_are_none", 1, {5}},
	{"what_nothing_leads_to_is_none", 1, {4}},
	{"a_loop", 1, {5}},
	{"ret_8", -ENOTSUP, {0}},
	{"lret", -ENOTSUP, {0}},
	{"data16_ret", -ENOTSUP, {0}},
	{"jmp_rax", -ENOTSUP, {0}},
	{"jmp_8_rax", -ENOTSUP, {0}},
	{"jmp_pointer_rip_which_nothing_fills", -ENOTSUP, {0}},
	{"int_returns", 1, {2}},
	{"int3_continues", 1, {1}},
	{"never", -ENOTSUP, {0}},
	{"no_instruction", -ENOTSUP, {0}},
	{"cut_off", -ENOTSUP, {0}},
	{"out_of_the_code", -ENOTSUP, {0}},
	{"a_call_at_the_end", 1, {2}},
	{"beyond_the_symbol", -ENOTSUP, {0}},
	{"overlapping", -ENOTSUP, {0}},
};

static int find(const struct elf_image *image, uint64_t offset, uint64_t size_bytes,
		struct function_exits *ret)
{
	const struct elf_function function = {
		.is_found = true, .offset = offset, .size_bytes = size_bytes};
	struct frame_table frames;
	int err = frame_table_init(&frames, image);

	*ret = (struct function_exits){0};
	if (!err)
		err = function_exits_find(image, &frames, &function, ret);
	frame_table_deinit(&frames);
	return err;
}

static void check_case(const struct exits_case *test)
{
	const struct code_case *code = code_case_find(test->name);
	struct function_exits exits = {0};
	struct code_file file;
	int err;

	code_file_init(&file, code->code, code_case_size(code));
	err = find(&file.image, CODE_FILE_OFFSET, code_case_function_size(code), &exits);
	if (test->nr < 0) {
		if (err != test->nr || !exits.why)
			fail_msg("%s: %d", test->name, err);
	} else if (err || exits.nr != (size_t)test->nr) {
		fail_msg("%s: %d (%s), %zu exits", test->name, err, exits.why ? exits.why : "",
			 exits.nr);
	}
	for (int i = 0; i < test->nr; i++)
		if (exits.offsets[i] != CODE_FILE_OFFSET + test->exits[i])
			fail_msg("%s: exit %d at 0x%" PRIx64, test->name, i, exits.offsets[i]);
	code_file_deinit(&file);
}

static void each_rule_holds(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		check_case(&cases[i]);
}

static void cut_off_code_is_survived(void **state)
{
	const struct code_case *plain = code_case_find("plain");

	for (size_t size = 1; size < code_case_size(plain); size++) {
		struct function_exits exits;
		struct code_file file;

		code_file_init(&file, plain->code, size);
		if (find(&file.image, CODE_FILE_OFFSET, size, &exits) == 0)
			for (size_t i = 0; i < exits.nr; i++)
				assert_int_equal(plain->code[exits.offsets[i] - CODE_FILE_OFFSET],
						 0xc3);
		code_file_deinit(&file);
	}
}

static uint32_t next_random(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 8;
}

static void random_code_is_survived(void **state)
{
	uint32_t random = 1;

	for (int round = 0; round < 3000; round++) {
		uint8_t code[256], info[64];
		struct function_exits exits;
		struct code_file file;

		for (size_t i = 0; i < sizeof(code); i++)
			code[i] = (uint8_t)next_random(&random);
		for (size_t i = 0; i < sizeof(info); i++)
			info[i] = (uint8_t)next_random(&random);
		code_file_init(&file, code, sizeof(code));
		if (round % 2)
			code_file_add_section(&file, ".eh_frame", SHT_PROGBITS, info, sizeof(info));
		if (find(&file.image, CODE_FILE_OFFSET, sizeof(code), &exits) == 0)
			assert_in_range(exits.nr, 1, FUNCTION_MAX_EXITS);
		code_file_deinit(&file);
	}
}

#define PADS_AT 6 /* size of the function "with_pad", which its LSDA follows */

/* A CIE with the letters zLR, and an FDE of the code's first six bytes. */
static void make_frame_info(uint8_t ret[56], int32_t pads)
{
	static const uint8_t cie[] = {20,  0,	0, 0, 0,    0,	0, 0,	 1,   'z',
				      'L', 'R', 0, 1, 0x78, 16, 2, 0x1b, 0x1b};
	const int32_t fde[] = {20, 28, CODE_FILE_OFFSET - (CODE_FILE_DATA_OFFSET + 32), PADS_AT};
	int32_t distance = CODE_FILE_OFFSET + pads - (CODE_FILE_DATA_OFFSET + 41);

	memset(ret, 0, 56);
	memcpy(ret, cie, sizeof(cie));
	memcpy(ret + 24, fde, sizeof(fde));
	ret[40] = 4;
	memcpy(ret + 41, &distance, sizeof(distance));
}

static int find_with_pads(const uint8_t *code, size_t size_bytes, int32_t pads,
			  struct function_exits *ret)
{
	struct code_file file;
	uint8_t info[56];
	int err;

	make_frame_info(info, pads);
	code_file_init(&file, code, size_bytes);
	code_file_add_section(&file, ".eh_frame", SHT_PROGBITS, info, sizeof(info));
	err = find(&file.image, CODE_FILE_OFFSET, PADS_AT, ret);
	code_file_deinit(&file);
	return err;
}

static void landing_pads_lead_to_exits(void **state)
{
	const struct code_case *pad = code_case_find("with_pad");
	struct function_exits exits = {0};
	size_t all = code_case_size(pad);

	assert_int_equal(find_with_pads(pad->code, all, PADS_AT, &exits), 0);
	assert_int_equal(exits.nr, 2);
	assert_int_equal(exits.offsets[0], CODE_FILE_OFFSET + 2);
	assert_int_equal(exits.offsets[1], CODE_FILE_OFFSET + 5);
	/* The table is cut off, is elsewhere, or leads out of the code. */
	for (size_t size = PADS_AT; size < all; size++)
		assert_int_equal(find_with_pads(pad->code, size, PADS_AT, &exits), -ENOTSUP);
	assert_int_equal(find_with_pads(pad->code, all, 0x100000, &exits), -ENOTSUP);
	for (int byte = 0; byte < 256; byte++) {
		uint8_t code[32];

		assert_true(all <= sizeof(code));
		memcpy(code, pad->code, all);
		code[all - 2] = (uint8_t)byte;
		if (find_with_pads(code, all, PADS_AT, &exits) == 0)
			for (size_t i = 0; i < exits.nr; i++)
				assert_int_equal(code[exits.offsets[i] - CODE_FILE_OFFSET], 0xc3);
	}
}

/* Functions of this program, compiled for the test. */
static __attribute__((noinline, used)) int exits_with_switch(int value, int *out)
{
	switch (value) {
	case 0:
		return out[3];
	case 1:
		out[1] = 7;
		return out[0] * 3;
	case 2:
		*out = 5;
		break;
	case 3:
		return -out[2];
	case 4:
		out[4]++;
		return 9;
	case 5:
		out[5] = out[6];
		return 11;
	case 6:
		return out[7] / 3;
	default:
		return 1;
	}
	return 2;
}

static bool match_function(void *context, const struct elf_symbol *symbol)
{
	struct elf_symbol *wanted = context;

	if (strcmp(symbol->name, wanted->name) != 0 || symbol->is_import)
		return true;
	wanted->address = symbol->address;
	wanted->size_bytes = symbol->size_bytes;
	return false;
}

static void switches_are_followed(void **state)
{
	struct elf_symbol symbol = {.name = "exits_with_switch"};
	struct elf_function function = {0};
	struct function_exits exits = {0};
	struct elf_image image;
	int numbers[8] = {1, 2, 3, 4, 5, 6, 7, 8}, err;

	assert_int_equal(exits_with_switch(1, numbers), 3);
	assert_int_equal(elf_image_open(&image, "/proc/self/exe"), 0);
	elf_image_visit_symbols(&image, match_function, &symbol);
	assert_true(elf_image_locate(&image, &symbol, &function));
	err = find(&image, function.offset, function.size_bytes, &exits);
#if defined(__OPTIMIZE__)
	if (err)
		fail_msg("%s at 0x%" PRIx64, exits.why, exits.where);
#else
	/* The number is compared in memory, where bounds are not followed. */
	assert_int_equal(err, -ENOTSUP);
#endif
	elf_image_deinit(&image);
}

/* --- This machine's libraries --- */

struct library {
	struct elf_image image;
	struct frame_table frames;
	uint64_t *returns; /* offsets of what objdump shows as a return, ascending */
	size_t nr_returns;
	size_t nr_functions, nr_understood, nr_exits;
};

static int compare_offsets(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static void read_returns(struct library *library, const char *path)
{
	char command[256], line[512];
	size_t capacity = 0;
	FILE *in;

	snprintf(command, sizeof(command), "objdump -d --no-show-raw-insn %s 2>/dev/null", path);
	in = popen(command, "r");
	assert_non_null(in);
	while (fgets(line, sizeof(line), in)) {
		uint64_t address, offset;
		char text[64];

		if (sscanf(line, " %" SCNx64 ":\t%63[^\n]", &address, text) != 2 ||
		    !strstr(text, "ret") ||
		    !elf_image_locate_code(&library->image, address, &offset))
			continue;
		if (library->nr_returns == capacity) {
			capacity = capacity ? 2 * capacity : 4096;
			library->returns =
				reallocarray(library->returns, capacity, sizeof(*library->returns));
			assert_non_null(library->returns);
		}
		library->returns[library->nr_returns++] = offset;
	}
	pclose(in);
	qsort(library->returns, library->nr_returns, sizeof(*library->returns), compare_offsets);
}

static bool check_function(void *context, const struct elf_symbol *symbol)
{
	struct library *library = context;
	struct elf_function function = {0};
	struct function_exits exits = {0};
	int err;

	if (symbol->type != STT_FUNC || !symbol->in_dynsym ||
	    !elf_image_locate(&library->image, symbol, &function))
		return true;
	err = function_exits_find(&library->image, &library->frames, &function, &exits);
	assert_true(err == 0 || (err == -ENOTSUP && exits.why));
	library->nr_functions++;
	library->nr_understood += !err;
	for (size_t i = 0; !err && i < exits.nr; i++) {
		library->nr_exits++;
		if (!bsearch(&exits.offsets[i], library->returns, library->nr_returns,
			     sizeof(*library->returns), compare_offsets))
			fail_msg("%s: no return at 0x%" PRIx64, symbol->name, exits.offsets[i]);
	}
	return true;
}

static void exits_are_returns(void **state)
{
	static const char *const paths[] = {
		"/usr/lib/x86_64-linux-gnu/libc.so.6",
		"/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
		"/usr/lib/x86_64-linux-gnu/libjemalloc.so.2",
		"/usr/lib/x86_64-linux-gnu/libtcmalloc_minimal.so.4",
		"/usr/lib/x86_64-linux-gnu/libmimalloc.so.2",
		"/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
	};

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		struct library library = {0};

		if (access(paths[i], R_OK) != 0)
			continue;
		assert_int_equal(elf_image_open(&library.image, paths[i]), 0);
		assert_int_equal(frame_table_init(&library.frames, &library.image), 0);
		read_returns(&library, paths[i]);
		elf_image_visit_symbols(&library.image, check_function, &library);
		printf("%s: %zu of %zu functions, %zu exits\n", paths[i], library.nr_understood,
		       library.nr_functions, library.nr_exits);
		assert_true(library.nr_understood > library.nr_functions / 2);
		free(library.returns);
		frame_table_deinit(&library.frames);
		elf_image_deinit(&library.image);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_rule_holds),
		cmocka_unit_test(cut_off_code_is_survived),
		cmocka_unit_test(random_code_is_survived),
		cmocka_unit_test(landing_pads_lead_to_exits),
		cmocka_unit_test(switches_are_followed),
		cmocka_unit_test(exits_are_returns),
	};

#if !defined(__x86_64__)
	return 77;
#endif
	return cmocka_run_group_tests(tests, NULL, NULL);
}
