/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The default size of the rings. */
#include "recorder/events/ring_size.h"

#include "common/proc/cgroup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>
#include <cmocka.h>

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

static void test_most(void **state)
{
	assert_true(ring_size_most() >= ring_size_default());
	assert_true(ring_size_most() <= 65536);
}

static void test_by_memory(void **state)
{
	/* Enough memory: 8 MiB each. */
	assert_int_equal(ring_size_for(16 * GIB, 8, 4096), 2048);
	assert_int_equal(ring_size_for(1024 * GIB, 1, 4096), 2048);
	assert_int_equal(ring_size_for(16 * GIB, 8, 65536), 128);
	/* All together a 64th. */
	assert_int_equal(ring_size_for(16 * GIB, 64, 4096), 1024);
	assert_int_equal(ring_size_for(2 * GIB, 16, 4096), 512);
	assert_int_equal(ring_size_for(2 * GIB, 12, 4096), 512); /* not 682 */
	/* But so much that a ring works. */
	assert_int_equal(ring_size_for(64 * MIB, 64, 4096), 128);
	assert_int_equal(ring_size_for(0, 0, 4096), 128);
}

static void test_here(void **state)
{
	uint32_t pages = ring_size_default();

	assert_true(pages >= 1 && (pages & (pages - 1)) == 0);
	assert_true((uint64_t)pages * (uint64_t)getpagesize() <= 8 * MIB);
	assert_true(cgroup_memory_limit() > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_most),
		cmocka_unit_test(test_by_memory),
		cmocka_unit_test(test_here),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
