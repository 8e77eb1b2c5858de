/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A program that a test makes up block by block, and what is judged of it. Each test includes it
 * once. */
#ifndef LEAKTOOLS_TEST_SUPPORT_JUDGED_PROGRAM_H
#define LEAKTOOLS_TEST_SUPPORT_JUDGED_PROGRAM_H

#include "parser/verdicts/verdicts.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#define SECOND	UINT64_C(1000000000)
#define START	(1000 * SECOND)
#define MAX	20000
#define FOREVER 1e9

static struct heap_block held[MAX];
static struct verdict_input input;
static struct verdicts verdicts;

static inline int begin(void **state)
{
	input = (struct verdict_input){
		.sites = site_stats_create(),
		.held = held,
		.start_ns = START,
		.end_ns = START + 100 * SECOND,
	};
	return input.sites ? 0 : -1;
}

static inline int end(void **state)
{
	verdicts_deinit(&verdicts);
	site_stats_destroy((struct site_stats *)input.sites);
	return 0;
}

/* Blocks must be added in the order of their times. */
static inline void add(uint32_t stack_id, pid_t pid, uint64_t size, double time_s, double life_s)
{
	struct site_stats *sites = (struct site_stats *)input.sites;
	struct site_block block = {
		.stack_id = stack_id,
		.size_bytes = size,
		.time_ns = START + (uint64_t)(time_s * (double)SECOND),
	};

	assert_int_equal(site_stats_enter(sites, &block), 0);
	if (block.time_ns + (uint64_t)(life_s * (double)SECOND) < input.end_ns) {
		assert_int_equal(
			site_stats_leave(sites, &block,
					 block.time_ns + (uint64_t)(life_s * (double)SECOND)),
			0);
		return;
	}
	assert_true(input.nr_held < MAX);
	held[input.nr_held++] = (struct heap_block){
		.address = 0x1000 + 16 * input.nr_held,
		.size_bytes = size,
		.size_known = true,
		.allocated = {.time_ns = block.time_ns, .stack_id = stack_id, .pid = pid},
	};
}

static inline const struct site_verdict *verdict_of(uint32_t stack_id)
{
	for (size_t i = 0; i < verdicts.nr_sites; i++)
		if (verdicts.sites[i].site->stack_id == stack_id)
			return &verdicts.sites[i];
	fail_msg("stack %d holds nothing", (int)stack_id);
	return NULL;
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)

#endif
