/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a scan said of recorded blocks: only of those that it can have seen. */
#include "parser/analysis/reach.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#define PID	   7
#define STOPPED_NS 1000
#define HEAP	   0x10000
#define HEAP_BYTES 0x10000

static const struct probe_schema malloc_schema = {.function = "malloc", .effect = HEAP_ALLOC};

static void add_at(struct reach *reach, enum reach_class class, uint64_t address, uint64_t bytes,
		   uint64_t stopped_ns)
{
	const struct perf_sample sample = {
		.origin.pid = PID,
		.mark_number = class,
		.args = {[REACH_ADDRESS] = address,
			 [REACH_BYTES] = bytes,
			 [REACH_STOPPED] = stopped_ns},
	};

	assert_int_equal(reach_add(reach, &sample), 0);
}

static void add(struct reach *reach, enum reach_class class, uint64_t address, uint64_t bytes)
{
	add_at(reach, class, address, bytes, STOPPED_NS);
}

static struct heap_block block(uint64_t address, uint64_t bytes)
{
	return (struct heap_block){
		.address = address,
		.size_bytes = bytes,
		.size_known = true,
		.allocated = {.pid = PID, .time_ns = STOPPED_NS - 1, .schema = &malloc_schema},
	};
}

static struct reach *scanned(void)
{
	struct reach *reach = reach_create();

	assert_non_null(reach);
	add(reach, REACH_LOST, HEAP + 0x100, 24);
	add(reach, REACH_POSSIBLE, HEAP + 0x80, 104);
	add(reach, REACH_HEAP, HEAP, HEAP_BYTES);
	return reach;
}

static void what_was_not_named_is_held(void **state)
{
	struct reach *reach = scanned();
	struct heap_block lost = block(HEAP + 0x100, 20), held = block(HEAP + 0x110, 20),
			  possible = block(HEAP + 0x80, 100);

	assert_true(reach_has_any(reach));
	assert_int_equal(reach_of(reach, &lost), REACH_LOST);
	assert_int_equal(reach_of(reach, &possible), REACH_POSSIBLE);
	assert_int_equal(reach_of(reach, &held), REACH_HELD);
	reach_destroy(reach);
}

static void what_the_scan_cannot_have_seen_is_not_scanned(void **state)
{
	struct reach *reach = scanned();
	struct heap_block outside = block(HEAP + HEAP_BYTES, 20), before = block(HEAP - 1, 20),
			  later = block(HEAP + 0x100, 20), other = block(HEAP + 0x100, 20),
			  larger = block(HEAP + 0x100, 25), smaller = block(HEAP + 0x80, 20),
			  copy = block(HEAP + 0x100, 20);

	later.allocated.time_ns = STOPPED_NS;
	other.allocated.pid = PID + 1;
	copy.inherited = true;
	assert_int_equal(reach_of(reach, &outside), REACH_NOT_SCANNED);
	assert_int_equal(reach_of(reach, &before), REACH_NOT_SCANNED);
	assert_int_equal(reach_of(reach, &later), REACH_NOT_SCANNED);
	assert_int_equal(reach_of(reach, &other), REACH_NOT_SCANNED);
	assert_int_equal(reach_of(reach, &larger), REACH_NOT_SCANNED);
	assert_int_equal(reach_of(reach, &smaller), REACH_NOT_SCANNED);
	assert_int_equal(reach_of(reach, &copy), REACH_NOT_SCANNED);
	reach_destroy(reach);
}

static void name(struct reach *reach, pid_t pid, uint64_t number, const char *text)
{
	struct perf_sample sample = {.origin.pid = pid, .mark_number = number};

	snprintf(sample.mark_text, sizeof(sample.mark_text), "%s", text);
	assert_int_equal(reach_add_holder(reach, &sample), 0);
}

static void hold(struct reach *reach, uint64_t address, uint64_t bytes, uint64_t number)
{
	const struct perf_sample sample = {
		.origin.pid = PID,
		.mark_number = REACH_HELD,
		.args = {[REACH_ADDRESS] = address,
			 [REACH_BYTES] = bytes,
			 [REACH_STOPPED] = STOPPED_NS,
			 [REACH_HOLDER] = number},
	};

	assert_int_equal(reach_add(reach, &sample), 0);
}

static const char *name_of(struct reach *reach, uint64_t address, uint32_t *ret)
{
	struct heap_block held = block(address, 20);

	assert_int_equal(reach_of(reach, &held), REACH_HELD);
	*ret = reach_holder_of(reach, &held);
	return reach_holder_name(reach, *ret);
}

static void holders_have_names(void **state)
{
	struct reach *reach = scanned();
	uint32_t first, second;

	hold(reach, HEAP + 0x400, 0x100, 2);
	hold(reach, HEAP + 0x200, 0x100, 1);
	hold(reach, HEAP + 0x500, 0x100, 0);
	name(reach, PID, 1, "cache (server)");
	name(reach, PID, 2, "list (server)");
	/* Another process has the same variables. */
	name(reach, PID + 1, 7, "list (server)");
	name(reach, PID + 1, 0, "");
	assert_string_equal(name_of(reach, HEAP + 0x200, &first), "cache (server)");
	assert_string_equal(name_of(reach, HEAP + 0x4f8, &second), "list (server)");
	assert_int_not_equal(first, second);
	assert_int_equal(reach_nr_holders(reach), HOLDER_FIRST + 2);
	assert_null(name_of(reach, HEAP + 0x500, &first));
	assert_int_equal(first, HOLDER_WITHOUT_NAME);
	/* Between them, of what was said nothing. */
	assert_null(name_of(reach, HEAP + 0x300, &first));
	assert_int_equal(first, HOLDER_NOT_KNOWN);
	reach_destroy(reach);
}

static void the_last_complete_scan_counts(void **state)
{
	struct reach *reach = scanned();
	struct heap_block first = block(HEAP + 0x100, 20), second = block(HEAP + 0x200, 20),
			  grown = block(HEAP + HEAP_BYTES + 0x10, 20);

	/* The second heap begins elsewhere: what the first scan said of its bytes does not count.
	 */
	second.allocated.time_ns = STOPPED_NS + 5;
	add_at(reach, REACH_LOST, HEAP + 0x200, 24, STOPPED_NS + 10);
	assert_int_equal(reach_of(reach, &first), REACH_LOST);
	assert_int_equal(reach_of(reach, &second), REACH_NOT_SCANNED);
	add_at(reach, REACH_HEAP, HEAP - 0x1000, 2 * HEAP_BYTES, STOPPED_NS + 10);
	assert_int_equal(reach_of(reach, &first), REACH_HELD);
	assert_int_equal(reach_of(reach, &second), REACH_LOST);
	assert_int_equal(reach_of(reach, &grown), REACH_HELD);
	/* One without heaps has not ended. */
	add_at(reach, REACH_LOST, HEAP + HEAP_BYTES + 0x10, 24, STOPPED_NS + 20);
	grown.allocated.time_ns = STOPPED_NS + 15;
	assert_int_equal(reach_of(reach, &second), REACH_LOST);
	assert_int_equal(reach_of(reach, &grown), REACH_NOT_SCANNED);
	/* Of another process, the earlier scan is the last one. */
	second.allocated.pid = PID + 1;
	assert_int_equal(reach_of(reach, &second), REACH_NOT_SCANNED);
	reach_destroy(reach);
}

static void a_later_scan_speaks_of_what_it_was_asked(void **state)
{
	struct reach *reach = reach_create();
	struct heap_block lost = block(HEAP, 20), gone = block(HEAP + 0x20, 20),
			  held = block(HEAP + 0x40, 0), inside = block(HEAP + 8, 12),
			  other = block(HEAP + 0x60, 20);

	assert_non_null(reach);
	assert_false(reach_is_later(reach));
	assert_int_equal(reach_say(reach, &lost, REACH_LOST, 0), 0);
	assert_int_equal(reach_say(reach, &gone, REACH_GONE, 0), 0);
	assert_int_equal(reach_say(reach, &held, REACH_HELD, 3), 0);
	assert_int_equal(reach_name_holder(reach, PID, 3, "cache (server)"), 0);
	assert_true(reach_is_later(reach) && reach_has_any(reach));
	assert_int_equal(reach_of(reach, &lost), REACH_LOST);
	assert_int_equal(reach_of(reach, &gone), REACH_GONE);
	assert_int_equal(reach_of(reach, &held), REACH_HELD);
	assert_string_equal(reach_holder_name(reach, reach_holder_of(reach, &held)),
			    "cache (server)");
	/* sqlite3_malloc() gives out a part of what malloc() gave it. */
	assert_int_equal(reach_of(reach, &inside), REACH_NOT_SCANNED);
	assert_int_equal(reach_of(reach, &other), REACH_NOT_SCANNED);
	reach_destroy(reach);
}

static void hostile_samples_are_left_out(void **state)
{
	struct reach *reach = reach_create();

	assert_non_null(reach);
	add(reach, REACH_NOT_SCANNED, HEAP, HEAP_BYTES);
	add(reach, REACH_GONE, HEAP, HEAP_BYTES);
	add(reach, (enum reach_class)UINT32_MAX, HEAP, HEAP_BYTES);
	add(reach, REACH_HEAP, UINT64_MAX, 2);
	hold(reach, UINT64_MAX, 2, 1);
	assert_false(reach_has_any(reach));
	reach_destroy(reach);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_not_named_is_held),
		cmocka_unit_test(what_the_scan_cannot_have_seen_is_not_scanned),
		cmocka_unit_test(holders_have_names),
		cmocka_unit_test(the_last_complete_scan_counts),
		cmocka_unit_test(a_later_scan_speaks_of_what_it_was_asked),
		cmocka_unit_test(hostile_samples_are_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
