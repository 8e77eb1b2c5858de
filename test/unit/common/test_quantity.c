/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sizes, times and counts as people read them. */
#include "common/quantity.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <math.h>
#include <cmocka.h>

static void amounts_have_three_digits(void **state)
{
	assert_string_equal(quantity_bytes(0).text, "0 bytes");
	assert_string_equal(quantity_bytes(1).text, "1 byte");
	assert_string_equal(quantity_bytes(1023).text, "1023 bytes");
	assert_string_equal(quantity_bytes(1024).text, "1.00 KiB");
	assert_string_equal(quantity_bytes(61440).text, "60.0 KiB");
	assert_string_equal(quantity_bytes(1023.6 * 1024).text, "1.00 MiB");
	assert_string_equal(quantity_bytes(0x1p64).text, "16.0 EiB");
	assert_string_equal(quantity_bytes(0x1p75).text, "32768 EiB");
	assert_string_equal(quantity_number(9.994).text, "9.99");
	assert_string_equal(quantity_number(9.996).text, "10.0");
	assert_string_equal(quantity_number(99.96).text, "100");
}

static void sizes_are_short(void **state)
{
	assert_string_equal(quantity_size(0).text, "0 bytes");
	assert_string_equal(quantity_size(1).text, "1 byte");
	assert_string_equal(quantity_size(1023).text, "1023 bytes");
	assert_string_equal(quantity_size(3072).text, "3 KiB");
	assert_string_equal(quantity_size(1536 * 1024).text, "1.5 MiB");
	assert_string_equal(quantity_size(UINT64_MAX).text, "16 EiB");
	assert_string_equal(quantity_size((1 << 20) - 100).text, "1023.9 KiB");
	assert_string_equal(quantity_size((1 << 20) - 6).text, "1.0 MiB");
	assert_string_equal(quantity_size((UINT64_C(1) << 60) - 1).text, "1 EiB");
	assert_string_equal(quantity_unit_for(0).name, "bytes");
	assert_string_equal(quantity_unit_for(1 << 20).name, "MiB");
}

static void times_have_the_unit_that_says_most(void **state)
{
	assert_string_equal(quantity_duration(0).text, "0 ns");
	assert_string_equal(quantity_duration(21e-6).text, "21.0 us");
	assert_string_equal(quantity_duration(0.5).text, "500 ms");
	assert_string_equal(quantity_duration(0.9994).text, "999 ms");
	assert_string_equal(quantity_duration(0.99996).text, "1.00 s");
	assert_string_equal(quantity_duration(0.9996e-6).text, "1.00 us");
	assert_string_equal(quantity_duration(3.9).text, "3.90 s");
	assert_string_equal(quantity_duration(90).text, "90.0 s");
	assert_string_equal(quantity_duration(120).text, "2.00 min");
	assert_string_equal(quantity_duration(7560).text, "2.10 h");
	assert_string_equal(quantity_duration(172800).text, "2.00 days");
}

static void counts_have_commas(void **state)
{
	assert_string_equal(quantity_count(0).text, "0");
	assert_string_equal(quantity_count(9999).text, "9999");
	assert_string_equal(quantity_count(10000).text, "10,000");
	assert_string_equal(quantity_count(1234567).text, "1,234,567");
	assert_string_equal(quantity_count(UINT64_MAX).text, "18,446,744,073,709,551,615");
}

/* An estimate must not look like a count. */
static void estimates_have_few_digits(void **state)
{
	assert_true(quantity_estimate(53203, 10286) == 53000);
	assert_true(quantity_estimate(10286, 10286) == 10000);
	assert_true(quantity_estimate(2756450, 512642) == 2800000);
	assert_true(quantity_estimate(12, 30) == 10);
	assert_true(quantity_estimate(2756451, 0) == 2756451);
	assert_true(quantity_estimate(0, 3) == 0);
	assert_true(quantity_estimate(5, INFINITY) == 5);
	assert_true(quantity_estimate(5, NAN) == 5);
	assert_true(fabs(quantity_estimate(0.04217, 0.006) - 0.042) < 1e-9);
	assert_string_equal(quantity_number_estimate(10.04, 1.3).text, "10.0");
	assert_string_equal(quantity_number_estimate(1.3, 1.3).text, "1.3");
	assert_string_equal(quantity_number_estimate(53203, 10286).text, "53000");
	assert_string_equal(quantity_number_estimate(10.04, 0).text, "10.0");
	assert_string_equal(quantity_bytes_estimate(3254780, 627700).text, "3.1 MiB");
	assert_string_equal(quantity_bytes_estimate(627700, 627700).text, "600 KiB");
	assert_string_equal(quantity_bytes_estimate(287309824, 40e6).text, "270 MiB");
	assert_string_equal(quantity_bytes_estimate(512, 40).text, "510 bytes");
	assert_string_equal(quantity_bytes_estimate(3254780, 1).text, "3.10 MiB");
	assert_string_equal(quantity_bytes_estimate(3254780, 0).text, "3.10 MiB");
}

static void one_is_singular(void **state)
{
	assert_string_equal(quantity_plural(0), "s");
	assert_string_equal(quantity_plural(1), "");
	assert_string_equal(quantity_plural(2), "s");
	assert_string_equal(quantity_word(1, "process", "processes"), "process");
	assert_string_equal(quantity_word(0, "process", "processes"), "processes");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(amounts_have_three_digits),
		cmocka_unit_test(sizes_are_short),
		cmocka_unit_test(times_have_the_unit_that_says_most),
		cmocka_unit_test(counts_have_commas),
		cmocka_unit_test(estimates_have_few_digits),
		cmocka_unit_test(one_is_singular),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
