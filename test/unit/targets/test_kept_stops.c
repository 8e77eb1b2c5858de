/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Targets that stay stopped because another process has stopped them: when that is told. */
#include "common/proc/process_namespace.h"
#include "recorder/target_table/target_table.h"
#include "recorder/targets/kept_stops.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

/* No process has such ids: PID_MAX_LIMIT is 2^22. */
#define FIRST_PID  5000000
#define NR_TARGETS 3

static struct target_table *table;
static struct bpf_recorder recorder;
static uint64_t nr_skipped;
static char told[256]; /* since the last look at it */

/* In place of bpf_recorder.c, which has the programs' memory. */
uint64_t bpf_recorder_nr_skipped(const struct bpf_recorder *of, enum skip_cost cost)
{
	assert_ptr_equal(of, &recorder);
	return cost == SKIP_COSTS_STOPS ? nr_skipped : 0;
}

/* In place of process_namespace.c. */
bool process_namespace_format_name(pid_t pid, char to[static PROCESS_NAME_MAX])
{
	size_t length = strlen(told);

	snprintf(told + length, sizeof(told) - length, " %d", (int)pid - FIRST_PID);
	*to = 0;
	return false;
}

static int set_up(void **state)
{
	table = mmap(NULL, sizeof(*table), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		     0);
	assert_ptr_not_equal(table, MAP_FAILED);
	for (unsigned int i = 0; i < NR_TARGETS; i++)
		assert_non_null(target_table_add(table, FIRST_PID + i));
	nr_skipped = 0;
	return 0;
}

static int tear_down(void **state)
{
	return munmap(table, sizeof(*table));
}

static struct target *target_of(unsigned int i)
{
	return target_table_find(table, FIRST_PID + i);
}

/* A program has stopped target @i, which is continued. Returns who is told of. */
static const char *told_after_stop(unsigned int i, const struct bpf_recorder *by)
{
	target_of(i)->stopped = table->any_stopped = 1;
	target_table_continue_ready(table);
	assert_int_equal(target_of(i)->stopped, 0);
	*told = 0;
	kept_stops_tell(table, by);
	return told;
}

/* It is known who has stopped and continued them. */
static void nothing_is_told_without_a_skip(void **state)
{
	target_of(1)->job_stopped = 1;
	for (unsigned int i = 0; i < NR_TARGETS; i++)
		assert_string_equal(told_after_stop(i, &recorder), "");
	assert_int_equal(target_of(1)->job_stopped, 1);
}

static void each_is_told_once(void **state)
{
	target_of(1)->job_stopped = target_of(2)->job_stopped = 1;
	assert_string_equal(told_after_stop(1, &recorder), "");
	nr_skipped = 1;
	assert_string_equal(told_after_stop(0, &recorder), "");
	assert_string_equal(told_after_stop(1, &recorder), " 1");
	assert_string_equal(told_after_stop(1, &recorder), "");
	assert_string_equal(told_after_stop(2, &recorder), " 2");
	/* The next process of the entry is another one. */
	target_table_remove(table, FIRST_PID + 1);
	target_table_add(table, FIRST_PID + 1);
	target_of(1)->job_stopped = 1;
	assert_string_equal(told_after_stop(1, &recorder), " 1");
}

/* Whoever ends the stop: the watchdog, or the end of the recording. */
static void all_ends_of_stops_count(void **state)
{
	nr_skipped = 1;
	for (unsigned int i = 0; i < 2; i++) {
		target_of(i)->job_stopped = target_of(i)->stopped = 1;
		*told = 0;
		if (i)
			target_table_continue_all(table);
		else
			target_table_continue_overdue(table, UINT64_MAX);
		kept_stops_tell(table, &recorder);
		assert_string_equal(told, i ? " 1" : " 0");
	}
}

static void skips_of_other_programs_are_not_counted(void **state)
{
	target_of(0)->job_stopped = 1;
	assert_string_equal(told_after_stop(0, NULL), " 0");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(nothing_is_told_without_a_skip, set_up, tear_down),
		cmocka_unit_test_setup_teardown(each_is_told_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(all_ends_of_stops_count, set_up, tear_down),
		cmocka_unit_test_setup_teardown(skips_of_other_programs_are_not_counted, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
