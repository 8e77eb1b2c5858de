/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/scope.h"
#include "parser/statistics/release_counts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

static int setup(void **state)
{
	*state = release_counts_create();
	return *state ? 0 : -1;
}

static int teardown(void **state)
{
	release_counts_destroy(*state);
	return 0;
}

static void add(struct release_counts *counts, uint32_t allocated, uint32_t released, int times)
{
	for (int i = 0; i < times; i++)
		release_counts_add(counts, allocated, released);
}

/* The releases of the blocks of @nr sites are @expected, which ends with a count of 0. */
static void assert_releases(const struct release_counts *counts, const uint32_t *allocated,
			    size_t nr, const struct stack_count *expected)
{
	_cleanup_free_ struct stack_count *found = NULL;
	size_t nr_found = 0, nr_expected = 0;

	while (expected[nr_expected].count)
		nr_expected++;
	assert_int_equal(release_counts_of(counts, allocated, nr, &found, &nr_found), 0);
	assert_int_equal(nr_found, nr_expected);
	for (size_t i = 0; i < nr_expected; i++) {
		assert_int_equal(found[i].stack_id, expected[i].stack_id);
		assert_int_equal(found[i].count, expected[i].count);
	}
}

#define ASSERT_RELEASES(counts, sites, ...)                                                        \
	assert_releases(counts, sites, sizeof(sites) / sizeof(*(sites)),                           \
			(const struct stack_count[]){__VA_ARGS__, {0}})

static void nothing_was_released(void **state)
{
	static const uint32_t site[] = {1};

	ASSERT_RELEASES(*state, site, {0});
	assert_int_equal(release_counts_uncounted(*state), 0);
}

static void each_site_has_its_own(void **state)
{
	static const uint32_t first[] = {1}, last[] = {UINT32_MAX}, other[] = {3};

	add(*state, 1, 7, 2);
	add(*state, 1, 8, 3);
	add(*state, UINT32_MAX, UINT32_MAX, 4);
	add(*state, 7, 1, 5);
	ASSERT_RELEASES(*state, first, {8, 3}, {7, 2});
	ASSERT_RELEASES(*state, last, {UINT32_MAX, 4});
	ASSERT_RELEASES(*state, other, {0});
}

static void those_of_several_sites_are_added_up(void **state)
{
	static const uint32_t sites[] = {1, 2, 5};

	add(*state, 2, 9, 1);
	add(*state, 1, 7, 2);
	add(*state, 5, 7, 2);
	add(*state, 3, 7, 100);
	add(*state, 1, 8, 3);
	/* Equal ones by their stacks. */
	add(*state, 5, 6, 1);
	ASSERT_RELEASES(*state, sites, {7, 4}, {8, 3}, {6, 1}, {9, 1});
}

static void a_failed_realloc_releases_nothing(void **state)
{
	static const uint32_t site[] = {1};

	add(*state, 1, 7, 2);
	add(*state, 1, 8, 1);
	release_counts_withdraw(*state, 1, 7);
	release_counts_withdraw(*state, 1, 8);
	ASSERT_RELEASES(*state, site, {7, 1});
	release_counts_withdraw(*state, 1, 9);
	assert_int_equal(release_counts_uncounted(*state), 0);
}

static void too_many_pairs_are_counted_together(void **state)
{
	static const uint32_t first[] = {0}, last[] = {RELEASE_COUNTS_MAX - 1},
			      beyond[] = {RELEASE_COUNTS_MAX};

	for (uint32_t i = 0; i < RELEASE_COUNTS_MAX; i++)
		release_counts_add(*state, i, 7);
	add(*state, RELEASE_COUNTS_MAX, 7, 3);
	add(*state, 0, 7, 4);
	release_counts_withdraw(*state, RELEASE_COUNTS_MAX, 7);
	ASSERT_RELEASES(*state, first, {7, 5});
	ASSERT_RELEASES(*state, last, {7, 1});
	ASSERT_RELEASES(*state, beyond, {0});
	assert_int_equal(release_counts_uncounted(*state), 2);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(nothing_was_released),
		TEST(each_site_has_its_own),
		TEST(those_of_several_sites_are_added_up),
		TEST(a_failed_realloc_releases_nothing),
		TEST(too_many_pairs_are_counted_together),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
