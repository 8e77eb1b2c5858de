/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whether code returns, and where exceptions come back into it. */
#include "probes/x86/code_returns.h"
#include "probes/elf/landing_pads.h"

#include "common/scope.h"
#include "test/support/code_file.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static bool may_return(const uint8_t *code, size_t size_bytes, uint32_t first_argument)
{
	struct register_state registers = register_state_unknown();
	struct code_returns returns;
	struct code_file file;
	bool result;

	registers.values[REGISTER_DI] = value_make(VALUE_CONSTANT, first_argument);
	code_file_init(&file, code, size_bytes);
	code_returns_init(&returns, &file.image, CODE_FILE_OFFSET);
	result = code_may_return(&returns, CODE_FILE_OFFSET, &registers);
	assert_int_equal(returns.error, 0);
	/* Asked again, it is remembered. */
	assert_int_equal(code_may_return(&returns, CODE_FILE_OFFSET, &registers), result);
	code_file_deinit(&file);
	return result;
}

#define MAY_RETURN(argument, ...)                                                                  \
	may_return((const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}), argument)

static void what_never_returns_is_known(void **state)
{
	assert_true(MAY_RETURN(0, 0xc3));		    /* ret */
	assert_false(MAY_RETURN(0, 0xf4));		    /* hlt */
	assert_false(MAY_RETURN(0, 0x0f, 0x0b));	    /* ud2 */
	assert_false(MAY_RETURN(0, 0xeb, 0xfe));	    /* jmp to itself */
	assert_true(MAY_RETURN(0, 0xcc, 0xc3));		    /* int3; ret */
	assert_true(MAY_RETURN(0, 0x0f, 0x05, 0xc3));	    /* syscall; ret */
	assert_true(MAY_RETURN(0, 0xff, 0xe0));		    /* jmp *%rax */
	assert_true(MAY_RETURN(0, 0xff, 0x25, 0, 0, 0, 0)); /* jmp *0(%rip), as in a PLT */
	assert_true(MAY_RETURN(0, 0x06));		    /* no instruction */
	assert_true(MAY_RETURN(0, 0x90));		    /* nop, and the segment's end */
	assert_true(MAY_RETURN(0, 0xe9, 0, 0x10, 0, 0));    /* jmp out of the segment */
	assert_true(MAY_RETURN(0, 0x66, 0xeb, 0xfd));	    /* processors differ */
	/* call 1f; ret; 1: hlt, and the same with a ret there */
	assert_false(MAY_RETURN(0, 0xe8, 0x01, 0, 0, 0, 0xc3, 0xf4));
	assert_true(MAY_RETURN(0, 0xe8, 0x01, 0, 0, 0, 0xc3, 0xc3));
	/* call *%rax; hlt, and call *%rax; ret */
	assert_false(MAY_RETURN(0, 0xff, 0xd0, 0xf4));
	assert_true(MAY_RETURN(0, 0xff, 0xd0, 0xc3));
	/* calls itself: 1: call 1b; ret */
	assert_true(MAY_RETURN(0, 0xe8, 0xfb, 0xff, 0xff, 0xff, 0xc3));
}

static void arguments_decide_on_a_return(void **state)
{
	/* and $1,%edi; mov %edi,%ebx; call 2f; test %ebx,%ebx; jne 1f; ret; 1: hlt; 2: ret */
#define BY_ARGUMENT                                                                                \
	0x83, 0xe7, 0x01, 0x89, 0xfb, 0xe8, 0x06, 0, 0, 0, 0x85, 0xdb, 0x75, 0x01, 0xc3, 0xf4, 0xc3
	/* The same with %ecx, which the call changes */
#define BY_LOST                                                                                    \
	0x83, 0xe7, 0x01, 0x89, 0xf9, 0xe8, 0x06, 0, 0, 0, 0x85, 0xc9, 0x75, 0x01, 0xc3, 0xf4, 0xc3
	/* test %edi,%edi; je 1f; mov $1,%edi; 1: test %edi,%edi; jne 2f; ret; 2: hlt */
#define BY_EITHER 0x85, 0xff, 0x74, 0x05, 0xbf, 0x01, 0, 0, 0, 0x85, 0xff, 0x75, 0x01, 0xc3, 0xf4
	assert_false(MAY_RETURN(1, BY_ARGUMENT));
	assert_false(MAY_RETURN(3, BY_ARGUMENT));
	assert_true(MAY_RETURN(0, BY_ARGUMENT));
	assert_true(MAY_RETURN(2, BY_ARGUMENT));
	assert_true(MAY_RETURN(1, BY_LOST));
	assert_false(MAY_RETURN(5, BY_EITHER));
	assert_true(MAY_RETURN(0, BY_EITHER));
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

/* In libc, puts() unlocks its stream when its thread is cancelled, by way of an exception. */
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
