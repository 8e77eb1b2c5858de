/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Parsing sizes and ranges of sizes. */
#include "common/size_range.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void assert_range(const char *text, uint64_t min_bytes, uint64_t max_bytes)
{
	struct size_range range = {1, 0};

	if (size_range_parse(text, &range))
		fail_msg("%s is no size", text);
	if (range.min_bytes != min_bytes || range.max_bytes != max_bytes)
		fail_msg("%s is %llu..%llu", text, (unsigned long long)range.min_bytes,
			 (unsigned long long)range.max_bytes);
}

static void sizes_have_units(void **state)
{
	assert_range("0", 0, 0);
	assert_range("3072", 3072, 3072);
	assert_range("0x10", 16, 16);
	assert_range("3k", 3072, 3072);
	assert_range("3K", 3072, 3072);
	assert_range("3kB", 3072, 3072);
	assert_range("3KiB", 3072, 3072);
	assert_range("512B", 512, 512);
	assert_range("1M", 1 << 20, 1 << 20);
	assert_range("1.5M", 3 << 19, 3 << 19);
	assert_range("2g", 2ULL << 30, 2ULL << 30);
	assert_range("1T", 1ULL << 40, 1ULL << 40);
	assert_range("18446744073709551615", UINT64_MAX, UINT64_MAX);
}

static void a_lower_end_without_a_unit_has_the_upper_one_s(void **state)
{
	assert_range("1000..2000", 1000, 2000);
	assert_range("4..8k", 4096, 8192);
	assert_range("4k..8k", 4096, 8192);
	assert_range("1.5..2M", 1536 << 10, 2 << 20);
	assert_range("100..4k", 100, 4096);
	assert_range("4B..8k", 4, 8192);
	assert_range("3k..1M", 3072, 1 << 20);
	assert_range("0..8k", 0, 8192);
}

static void what_is_no_size_is_not_taken(void **state)
{
	static const char *const texts[] = {
		"",
		"k",
		"-1",
		"+1",
		" 1",
		"1 k",
		"3kk",
		"3x",
		"1.5",
		"1.",
		".5k",
		"1..",
		"..8k",
		"8k..4k",
		"5..4",
		"1..2..3",
		"1e3",
		"3kib",
		"3iB",
		"1.5..2",
		"4..8kx",
		"99999999999999999999",
		"18446744073709551615k",
		"16777216T",
		"9999999999.5T",
		"1...2",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct size_range range;

		if (size_range_parse(texts[i], &range) == 0)
			fail_msg("\"%s\" is taken for a size", texts[i]);
	}
}

static void one_size_is_no_range(void **state)
{
	uint64_t bytes;

	assert_int_equal(size_parse("64k", &bytes), 0);
	assert_int_equal(bytes, 65536);
	assert_int_not_equal(size_parse("1..2", &bytes), 0);
	assert_int_not_equal(size_parse("", &bytes), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_have_units),
		cmocka_unit_test(a_lower_end_without_a_unit_has_the_upper_one_s),
		cmocka_unit_test(what_is_no_size_is_not_taken),
		cmocka_unit_test(one_size_is_no_range),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
