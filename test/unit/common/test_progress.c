/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The text that shows progress. */
#include "common/progress.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define MIB    (1ULL << 20)
#define SECOND 1000000000ULL

static void assert_text(uint64_t done, uint64_t total, uint64_t elapsed_ns, const char *expected)
{
	char text[160];

	progress_text(text, sizeof(text), done, total, elapsed_ns);
	assert_string_equal(text, expected);
}

static void rate_and_time_left(void **state)
{
	assert_text(250 * MIB, 1000 * MIB, 2 * SECOND,
		    "25 %, 250 MiB of 1000 MiB, 125 MiB/s, 6 s left");
	assert_text(MIB, 1025 * MIB, SECOND,
		    "0 %, 1.00 MiB of 1.00 GiB, 1.00 MiB/s, 17 min 04 s left");
	assert_text(MIB, 8193 * MIB, SECOND,
		    "0 %, 1.00 MiB of 8.00 GiB, 1.00 MiB/s, 2 h 16 min left");
	assert_text(MIB, MIB, SECOND / 2, "100 %, 1.00 MiB of 1.00 MiB, 2.00 MiB/s, 0 s left");
}

static void nothing_done_and_nothing_to_do(void **state)
{
	assert_text(0, MIB, SECOND, "0 %, 0 bytes of 1.00 MiB, 0 bytes/s, ? left");
	assert_text(0, 0, SECOND, "100 %, 0 bytes of 0 bytes, 0 bytes/s, ? left");
	assert_text(0, MIB, 0, "0 %, 0 bytes of 1.00 MiB, 0 bytes/s, ? left");
}

static void time_left(void **state)
{
	char text[48];

	progress_left_text(text, sizeof(text), 59.4);
	assert_string_equal(text, "59 s");
	progress_left_text(text, sizeof(text), 59.6);
	assert_string_equal(text, "1 min 00 s");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rate_and_time_left),
		cmocka_unit_test(nothing_done_and_nothing_to_do),
		cmocka_unit_test(time_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
