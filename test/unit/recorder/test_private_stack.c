/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Recognises programs that a kernel must not preempt (recorder/loading/private_stack.h). */
#include "recorder/loading/private_stack.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

/*
 * The code that the JIT of Linux 6.18 generates for a program with a private stack, and for one
 * without.
 */
static const uint8_t with_private_stack[] = {
	0x55,							    /* push %rbp */
	0x48, 0x89, 0xe5,					    /* mov %rsp,%rbp */
	0x49, 0xb9, 0x40, 0x12, 0,    0,    0,	  0xe8, 0xff, 0xff, /* movabs $...,%r9 */
	0x65, 0x4c, 0x03, 0x0c, 0x25, 0x10, 0xa0, 0x02, 0,	    /* add %gs:0x2a010,%r9 */
	0x31, 0xc0, 0xc9, 0xc3,					    /* xor %eax,%eax; leave; ret */
};
static const uint8_t without[] = {
	0x55,						   /* push %rbp */
	0x48, 0x89, 0xe5,				   /* mov %rsp,%rbp */
	0x48, 0x81, 0xec, 0x80, 0,    0,    0,		   /* sub $0x80,%rsp */
	0x65, 0x48, 0x03, 0x04, 0x25, 0x10, 0xa0, 0x02, 0, /* add %gs:0x2a010,%rax */
	0x31, 0xc0, 0xc9, 0xc3,				   /* xor %eax,%eax; leave; ret */
};

static void test_code(void **state)
{
	assert_true(code_has_private_stack(with_private_stack, sizeof(with_private_stack)));
	assert_false(code_has_private_stack(without, sizeof(without)));
	assert_false(code_has_private_stack(without, 0));
}

static void test_releases(void **state)
{
	assert_true(private_stack_rules_are_known("5.15.0-91-generic"));
	assert_true(private_stack_rules_are_known("6.18.4"));
	assert_true(private_stack_rules_are_known("7.3.4+deb13-amd64"));
	assert_false(private_stack_rules_are_known("7.4.0"));
	assert_false(private_stack_rules_are_known("8.0"));
	assert_false(private_stack_rules_are_known(""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_code),
		cmocka_unit_test(test_releases),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
