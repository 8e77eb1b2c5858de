/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Jumps from anywhere in a file (test_code_jumps.S): instructions that hold the bytes of a call are
 * none, unless it cannot be shown that they are instructions.
 */
#include "probes/x86/code_jumps.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#if defined(__x86_64__)
extern const char __executable_start;
extern const char place_of_call, place_of_jcc, place_of_immediate, place_without_frame,
	place_in_data;

/* In this program's own file. */
static bool is_entered(const char *place)
{
	uint64_t offset;
	struct elf_image image;
	struct code_span span;

	assert_int_equal(elf_image_open(&image, "/proc/self/exe"), 0);
	assert_true(
		elf_image_locate_code(&image, (uint64_t)(place - &__executable_start), &offset));
	span = (struct code_span){.first = offset, .last = offset};
	assert_int_equal(code_jumps_find(&image, &span, 1), 0);
	elf_image_deinit(&image);
	return span.is_entered;
}

static void jumps_are_seen(void **state)
{
	assert_true(is_entered(&place_of_call));
	assert_true(is_entered(&place_of_jcc));
}

static void bytes_of_other_instructions_are_none(void **state)
{
	assert_false(is_entered(&place_of_immediate));
}

static void in_doubt_they_are(void **state)
{
	assert_true(is_entered(&place_without_frame));
	assert_true(is_entered(&place_in_data));
}
#endif

int main(void)
{
#if defined(__x86_64__)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(jumps_are_seen),
		cmocka_unit_test(bytes_of_other_instructions_are_none),
		cmocka_unit_test(in_doubt_they_are),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
#else
	return 77;
#endif
}
