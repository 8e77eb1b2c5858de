/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whether a kernel is preemptible (recorder/programs/preemption.h). */
#include "recorder/programs/preemption.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

static void test_fixed(void **state)
{
	assert_false(preemption_is_possible("#91-Ubuntu SMP Tue Nov 14 13:30:08 UTC 2023", NULL));
	assert_true(preemption_is_possible("#1 SMP PREEMPT Tue Nov 14 13:30:08 UTC 2023", NULL));
	assert_true(preemption_is_possible("#1 SMP PREEMPT_RT Debian 6.1.192-2", NULL));
}

static void test_dynamic(void **state)
{
	static const char version[] = "#1 SMP PREEMPT_DYNAMIC Debian 6.1.192-2 (2026-11-16)";

	assert_false(preemption_is_possible(version, "(none) voluntary full\n"));
	assert_false(preemption_is_possible(version, "none (voluntary) full\n"));
	assert_true(preemption_is_possible(version, "none voluntary (full)\n"));
	assert_true(preemption_is_possible(version, "none voluntary full (lazy)\n"));
	assert_true(preemption_is_possible(version, NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fixed),
		cmocka_unit_test(test_dynamic),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
