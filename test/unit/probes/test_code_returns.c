/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whether code can return (test_code_returns.S), and whether exceptions resume in it. */
#include "probes/x86/code_returns.h"
#include "probes/elf/landing_pads.h"

#include "common/scope.h"
#include "test/support/code_cases.h"
#include "test/support/code_file.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static bool may_return(const char *name, uint32_t first_argument)
{
	const struct code_case *code = code_case_find(name);
	struct register_state registers = register_state_unknown();
	struct code_returns returns;
	struct code_file file;
	bool result;

	registers.values[REGISTER_DI] = value_make(VALUE_CONSTANT, first_argument);
	code_file_init(&file, code->code, code_case_size(code));
	code_returns_init(&returns, &file.image, CODE_FILE_OFFSET);
	result = code_may_return(&returns, CODE_FILE_OFFSET, &registers);
	assert_int_equal(returns.error, 0);
	/* The second answer is a remembered one. */
	assert_int_equal(code_may_return(&returns, CODE_FILE_OFFSET, &registers), result);
	code_file_deinit(&file);
	return result;
}

static void what_never_returns_is_known(void **state)
{
	assert_true(may_return("ret", 0));
	assert_false(may_return("hlt", 0));
	assert_false(may_return("ud2", 0));
	assert_false(may_return("jmp_to_itself", 0));
	assert_true(may_return("int3", 0));
	assert_true(may_return("syscall", 0));
	assert_true(may_return("indirect_jmp", 0));
	assert_true(may_return("plt_jmp", 0));
	assert_true(may_return("no_instruction", 0));
	assert_true(may_return("end_of_segment", 0));
	assert_true(may_return("jmp_out_of_segment", 0));
	assert_true(may_return("prefixed_jmp", 0));
	assert_false(may_return("calls_hlt", 0));
	assert_true(may_return("calls_ret", 0));
	assert_false(may_return("indirect_call_hlt", 0));
	assert_true(may_return("indirect_call_ret", 0));
	assert_true(may_return("calls_itself", 0));
}

static void arguments_decide_on_a_return(void **state)
{
	assert_false(may_return("by_argument", 1));
	assert_false(may_return("by_argument", 3));
	assert_true(may_return("by_argument", 0));
	assert_true(may_return("by_argument", 2));
	assert_true(may_return("by_lost_register", 1));
	assert_false(may_return("by_either", 5));
	assert_true(may_return("by_either", 0));
}

/* This process's C library. */
static void open_libc(struct elf_image *ret)
{
	void *libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
	Dl_info info;

	assert_non_null(libc);
	assert_true(dladdr(dlsym(libc, "malloc"), &info));
	assert_int_equal(elf_image_open(ret, info.dli_fname), 0);
	dlclose(libc);
}

/* In libc, puts() unlocks its stream by an exception if its thread is cancelled. */
static void exceptions_are_seen(void **state)
{
	static const char *const names[] = {"malloc", "free", "puts"};
	struct elf_function functions[ARRAY_SIZE(names)];
	struct code_file file;
	struct elf_image image;

	open_libc(&image);
	elf_image_find_functions(&image, names, ARRAY_SIZE(names), functions);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		assert_true(functions[i].is_found);
	assert_false(landing_pads_may_exist(&image, &functions[0]));
	assert_false(landing_pads_may_exist(&image, &functions[1]));
	assert_true(landing_pads_may_exist(&image, &functions[2]));
	elf_image_deinit(&image);
	/* A file without frame information. */
	code_file_init(&file, (const uint8_t[]){0xc3}, 1);
	functions[0].offset = CODE_FILE_OFFSET;
	functions[0].size_bytes = 1;
	assert_false(landing_pads_may_exist(&file.image, &functions[0]));
	code_file_deinit(&file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_never_returns_is_known),
		cmocka_unit_test(arguments_decide_on_a_return),
		cmocka_unit_test(exceptions_are_seen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
