/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Effects of calls and system calls on resources other than memory. */
#include "test/support/heap_feed.h"

#include "common/schema/syscall_schema.h"
#include "parser/processes/call_pairing.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/syscall.h>

/* The functions of a simulated library, each with its own address. */
struct library {
	struct feed feed;
	struct resource_schemas schemas;
};

static int setup(void **state)
{
	struct library *library = calloc(1, sizeof(*library));

	assert_non_null(library);
	feed_init(&library->feed, NULL);
	*state = library;
	return 0;
}

static int teardown(void **state)
{
	struct library *library = *state;

	feed_deinit(&library->feed);
	resource_schemas_deinit(&library->schemas);
	free(library);
	return 0;
}

static const struct resource_call *call_of(struct library *library, const char *event_name,
					   enum resource_place place, enum resource_failure failure)
{
	struct resource_event event;
	struct resource_call *call;

	assert_int_equal(resource_event_parse(event_name, &event), 0);
	assert_int_equal(resource_schemas_add(&library->schemas, &event, &call), 0);
	call->place = place;
	call->failure = failure;
	return call;
}

static uint64_t address_of(const struct resource_call *call)
{
	uint64_t address = 0x7f8000000000;

	/* Farther apart than one object file is. */
	for (const char *c = call->function; *c; c++)
		address += (uint64_t)(unsigned char)*c << 20;
	return address;
}

static void send(struct library *library, const struct resource_call *call, enum probe_point point,
		 struct perf_sample *sample)
{
	const struct perf_event_desc event = {.schema = &call->schema, .point = point};

	sample->event = &event;
	sample->origin = feed_origin(&library->feed);
	sample->probe_address = address_of(call);
	assert_int_equal(heap_tracker_sample(library->feed.tracker, sample, library->feed.stack_id),
			 0);
	sample->event = NULL;
}

static void enter(struct library *library, const struct resource_call *call, uint64_t handle,
		  uint64_t size_bytes)
{
	struct perf_sample sample = {.args = {handle, size_bytes}, .caller = library->feed.caller};

	send(library, call, PROBE_ENTRY, &sample);
}

static void leave(struct library *library, const struct resource_call *call, uint64_t ret,
		  uint64_t stored)
{
	struct perf_sample sample = {
		.ret = ret, .block = stored, .return_address = library->feed.caller};

	send(library, call, PROBE_RETURN, &sample);
}

/* fopen:ret / fclose:arg1 */
static const struct resource_call *fopen_of(struct library *library)
{
	call_of(library, "file__give_call__fopen", RESOURCE_RETURNED, RESOURCE_FAILS_BY_NULL);
	return call_of(library, "file__give_ret__fopen", RESOURCE_RETURNED, RESOURCE_FAILS_BY_NULL);
}

static const struct resource_call *fclose_of(struct library *library)
{
	return call_of(library, "file__take__fclose", RESOURCE_IN_ARGUMENT, RESOURCE_FAILS_BY_NULL);
}

static void open_file(struct library *library, uint64_t handle)
{
	enter(library, fopen_of(library), 0, 0);
	leave(library, fopen_of(library), handle, 0);
}

static void assert_counts(struct library *library, const struct resource_kind *kind, uint64_t gives,
			  uint64_t takes, uint64_t failures, uint64_t unknown_takes)
{
	const struct resource_counts *counts =
		&heap_tracker_resources(library->feed.tracker)[kind->number - 1];

	assert_ptr_equal(counts->kind, kind);
	assert_int_equal(counts->gives, gives);
	assert_int_equal(counts->takes, takes);
	assert_int_equal(counts->failures, failures);
	assert_int_equal(counts->unknown_takes, unknown_takes);
}

static const struct heap_block *held(struct library *library, size_t nr_expected)
{
	const struct heap_block *blocks;
	size_t nr;

	assert_int_equal(heap_tracker_finish(library->feed.tracker), 0);
	assert_int_equal(heap_tracker_held(library->feed.tracker, &blocks, &nr), 0);
	assert_int_equal(nr, nr_expected);
	return blocks;
}

static uint64_t anomalies(struct library *library, enum heap_anomaly_kind kind)
{
	return heap_tracker_stats(library->feed.tracker)->anomalies[kind];
}

static void what_is_not_given_back_is_held(void **state)
{
	struct library *library = *state;
	const struct heap_block *blocks;

	open_file(library, 0x1000);
	open_file(library, 0x2000);
	open_file(library, 0);
	enter(library, fclose_of(library), 0x1000, 0);
	enter(library, fclose_of(library), 0x9000, 0);
	enter(library, fclose_of(library), 0, 0);
	assert_counts(library, fopen_of(library)->kind, 2, 1, 1, 1);
	blocks = held(library, 1);
	assert_int_equal(blocks[0].address, 0x2000);
	assert_string_equal(blocks[0].allocated.schema->function, "fopen");
	assert_int_equal(heap_tracker_stats(library->feed.tracker)->allocations, 0);
}

static void the_same_number_is_another_handle_elsewhere(void **state)
{
	struct library *library = *state;
	const struct resource_call *lock =
		call_of(library, "lock__give__grab", RESOURCE_IN_ARGUMENT, RESOURCE_FAILS_BY_NULL);
	const struct heap_block *blocks;

	feed_malloc(&library->feed, 10, 0x1000);
	open_file(library, 0x1000);
	enter(library, lock, 0x1000, 0);
	feed_as(&library->feed, 200, 200);
	open_file(library, 0x1000);
	feed_as(&library->feed, 100, 100);
	feed_free(&library->feed, 0x1000);
	enter(library, fclose_of(library), 0x1000, 0);
	blocks = held(library, 2);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(blocks[i].address, 0x1000);
	assert_int_equal(anomalies(library, ANOMALY_DOUBLE_FREE), 0);
	assert_int_equal(anomalies(library, ANOMALY_STILL_HELD), 0);
}

static void what_is_given_back_twice_is_told(void **state)
{
	struct library *library = *state;
	const struct heap_anomaly *list;
	size_t nr;

	open_file(library, 0x1000);
	enter(library, fclose_of(library), 0x1000, 0);
	feed_as(&library->feed, 100, 101);
	enter(library, fclose_of(library), 0x1000, 0);
	assert_int_equal(anomalies(library, ANOMALY_DOUBLE_FREE), 1);
	held(library, 0);
	list = heap_tracker_anomalies(library->feed.tracker, &nr);
	assert_int_equal(nr, 1);
	assert_int_equal(list[0].address, 0x1000);
}

static void a_function_passes_on_what_another_gives(void **state)
{
	struct library *library = *state;
	const struct resource_call *outer = call_of(library, "file__give_ret__my_open",
						    RESOURCE_RETURNED, RESOURCE_FAILS_BY_NULL);

	enter(library, outer, 0, 0);
	open_file(library, 0x1000);
	leave(library, outer, 0x1000, 0);
	/* A function that gives its own handle, and one of fopen()'s. */
	enter(library, outer, 0, 0);
	open_file(library, 0x2000);
	leave(library, outer, 0x3000, 0);
	assert_counts(library, outer->kind, 3, 0, 0, 0);
	assert_int_equal(anomalies(library, ANOMALY_STILL_HELD), 0);
	held(library, 3);
}

static void a_function_takes_through_another(void **state)
{
	struct library *library = *state;
	const struct resource_call *outer = call_of(library, "file__take__my_close",
						    RESOURCE_IN_ARGUMENT, RESOURCE_FAILS_BY_NULL);
	uint64_t program = library->feed.caller;

	open_file(library, 0x1000);
	enter(library, outer, 0x1000, 0);
	library->feed.caller = address_of(outer) + 0x20;
	enter(library, fclose_of(library), 0x1000, 0);
	library->feed.caller = program;
	assert_counts(library, outer->kind, 1, 1, 0, 0);
	assert_int_equal(anomalies(library, ANOMALY_DOUBLE_FREE), 0);
	held(library, 0);
}

static void a_failed_call_gives_nothing(void **state)
{
	struct library *library = *state;
	const struct resource_call *get =
		call_of(library, "slot__give_ret__get", RESOURCE_STORED, RESOURCE_FAILS_BELOW);
	const struct heap_block *blocks;

	enter(library, get, 0x7000, 40);
	leave(library, get, (uint64_t)-12, 0x1000);
	enter(library, get, 0x7000, 50);
	leave(library, get, 0, 0x2000);
	assert_counts(library, get->kind, 1, 0, 1, 0);
	blocks = held(library, 1);
	assert_int_equal(blocks[0].address, 0x2000);
	assert_int_equal(blocks[0].size_bytes, 50);
}

static void half_calls_are_counted(void **state)
{
	struct library *library = *state;
	const struct resource_call *init = call_of(library, "slot__give_ret__init",
						   RESOURCE_IN_ARGUMENT, RESOURCE_FAILS_UNEQUAL);

	/* Only the entry shows what was initialised. */
	leave(library, init, 0, 0);
	for (int i = 0; i < 1000; i++)
		enter(library, init, 0x1000 + (uint64_t)i, 0);
	leave(library, init, 0, 0);
	assert_counts(library, init->kind, 1, 0, 0, 0);
	assert_int_equal(
		heap_tracker_resources(library->feed.tracker)[init->kind->number - 1].unpaired,
		1 + 1000 - CALL_MAX_DEPTH);
	held(library, 1);
}

static void references_are_counted_with_their_stacks(void **state)
{
	struct library *library = *state;
	const struct resource_call *make = call_of(library, "widget__new_ret__make",
						   RESOURCE_RETURNED, RESOURCE_FAILS_BY_NULL),
				   *ref = call_of(library, "widget__ref__add", RESOURCE_IN_ARGUMENT,
						  RESOURCE_FAILS_BY_NULL),
				   *unref = call_of(library, "widget__unref__drop",
						    RESOURCE_IN_ARGUMENT, RESOURCE_FAILS_BY_NULL);
	const struct ref_object *object;
	const struct heap_block *blocks;

	for (uint64_t handle = 0x1000; handle <= 0x2000; handle += 0x1000) {
		library->feed.stack_id = 1;
		enter(library, make, 0, 0);
		leave(library, make, handle, 0);
		library->feed.stack_id = 2;
		enter(library, ref, handle, 0);
		enter(library, ref, handle, 0);
		library->feed.stack_id = 3;
		enter(library, unref, handle, 0);
		enter(library, unref, handle, 0);
	}
	enter(library, unref, 0x1000, 0);
	enter(library, unref, 0, 0);
	blocks = held(library, 1);
	assert_int_equal(blocks[0].address, 0x2000);
	assert_int_equal(blocks[0].allocated.stack_id, 1);
	object = heap_tracker_refs(library->feed.tracker, &blocks[0]);
	assert_non_null(object);
	assert_int_equal(object->count, 1);
	assert_int_equal(object->nr_history, 3);
	assert_int_equal(object->history[0].refs, 1);
	assert_int_equal(object->history[1].refs, 2);
	assert_int_equal(object->history[2].unrefs, 2);
	assert_counts(library, make->kind, 2, 1, 0, 0);
}

static void a_history_has_a_limit(void **state)
{
	struct library *library = *state;
	const struct resource_call *ref =
		call_of(library, "widget__ref__add", RESOURCE_IN_ARGUMENT, RESOURCE_FAILS_BY_NULL);
	const struct ref_object *object;

	for (uint32_t i = 0; i < 10 * REF_MAX_STACKS; i++) {
		library->feed.stack_id = i + 1;
		enter(library, ref, 0x1000, 0);
	}
	object = heap_tracker_refs(library->feed.tracker, held(library, 1));
	assert_non_null(object);
	assert_int_equal(object->count, 10 * REF_MAX_STACKS);
	assert_int_equal(object->nr_history, REF_MAX_STACKS);
}

static void a_forked_child_has_copies(void **state)
{
	struct library *library = *state;
	const struct resource_call *ref = call_of(library, "widget__ref__add", RESOURCE_IN_ARGUMENT,
						  RESOURCE_FAILS_BY_NULL),
				   *unref = call_of(library, "widget__unref__drop",
						    RESOURCE_IN_ARGUMENT, RESOURCE_FAILS_BY_NULL);

	open_file(library, 0x1000);
	enter(library, ref, 0x2000, 0);
	feed_fork(&library->feed, 200);
	feed_as(&library->feed, 200, 200);
	enter(library, fclose_of(library), 0x1000, 0);
	enter(library, unref, 0x2000, 0);
	enter(library, ref, 0x2000, 0);
	held(library, 2);
}

/* Descriptors */

static void syscall_end(struct library *library, const char *event_name, uint64_t a, uint64_t b,
			uint64_t ret)
{
	struct perf_sample sample = {.args = {a, b}};
	struct perf_event_desc event = {0};

	event.syscall = syscall_schema_parse_event(event_name, &event.is_syscall_exit);
	assert_non_null(event.syscall);
	if (event.is_syscall_exit)
		sample = (struct perf_sample){.ret = ret, .block = a};
	sample.event = &event;
	sample.origin = feed_origin(&library->feed);
	assert_int_equal(heap_tracker_syscall(library->feed.tracker, &sample,
					      library->feed.stack_id, MAPPING_OWNER_UNKNOWN),
			 0);
}

/* AArch64 has no dup2(). */
#ifdef SYS_dup2
#define DUP "dup2"
#else
#define DUP "dup3"
#endif

static void system_calls_open_and_close(void **state)
{
	struct library *library = *state;
	const struct heap_block *blocks;

	syscall_end(library, "sys_enter_openat", 0, 0, 0);
	syscall_end(library, "sys_exit_openat", 0, 0, 0);
	syscall_end(library, "sys_exit_openat", 0, 0, 3);
	syscall_end(library, "sys_exit_openat", 0, 0, (uint64_t)-ENOENT);
	syscall_end(library, "sys_enter_close", 0, 0, 0);
	syscall_end(library, "sys_exit_close", 0, 0, 0);
	syscall_end(library, "sys_enter_close", 17, 0, 0);
	syscall_end(library, "sys_exit_close", 0, 0, (uint64_t)-EBADF);
	/* dup2(3, 3) does nothing; dup2(3, 4) opens 4, and the second time closes it before. */
	syscall_end(library, "sys_enter_" DUP, 3, 3, 0);
	syscall_end(library, "sys_exit_" DUP, 0, 0, 3);
	for (int i = 0; i < 2; i++) {
		syscall_end(library, "sys_enter_" DUP, 3, 4, 0);
		syscall_end(library, "sys_exit_" DUP, 0, 0, 4);
	}
	syscall_end(library, "sys_enter_fcntl", 3, F_GETFL, 0);
	syscall_end(library, "sys_exit_fcntl", 0, 0, 2);
	syscall_end(library, "sys_exit_pipe2", 5 | 6ULL << 32, 0, 0);
	syscall_end(library, "sys_exit_pipe2", 7 | 8ULL << 32, 0, (uint64_t)-EMFILE);
	syscall_end(library, "sys_enter_close_range", 5, 100, 0);
	blocks = held(library, 2);
	assert_int_equal(blocks[0].address, 3);
	assert_int_equal(blocks[1].address, 4);
	assert_counts(library, resource_call_of(blocks[0].allocated.schema)->kind, 6, 4, 2, 1);
	assert_int_equal(anomalies(library, ANOMALY_STILL_HELD), 0);
}

static void a_vfork_child_closes_copies(void **state)
{
	struct library *library = *state;

	syscall_end(library, "sys_exit_socket", 0, 0, 3);
	feed_fork(&library->feed, 200);
	feed_newtask(&library->feed, 200, CLONE_VM | CLONE_VFORK);
	feed_as(&library->feed, 200, 200);
	syscall_end(library, "sys_enter_close", 3, 0, 0);
	syscall_end(library, "sys_exit_openat", 0, 0, 4);
	/* From here on it has its own descriptors. */
	feed_comm(&library->feed, 200, 200, true, "other");
	syscall_end(library, "sys_exit_openat", 0, 0, 5);
	assert_int_equal(held(library, 2)[0].address, 3);
}

/* Events in any order, as in a hostile file: nothing breaks, and the sums are right. */
static void any_order_is_survived(void **state)
{
	static const char *const names[] = {
		"file__give_ret__a", "file__give__b",	 "file__take__c",      "widget__new_ret__d",
		"widget__ref__e",    "widget__unref__f", "widget__ref_ret__g",
	};
	struct library *library = *state;
	uint64_t random = 4711, given = 0, taken = 0;
	const struct resource_counts *counts = heap_tracker_resources(library->feed.tracker);
	const struct heap_block *blocks;
	size_t nr;

	for (int i = 0; i < 50000; i++) {
		const struct resource_call *call;

		random = random * 6364136223846793005ULL + 1442695040888963407ULL;
		call = call_of(library, names[(random >> 33) % 7],
			       (enum resource_place)((random >> 40) % 3),
			       (enum resource_failure)((random >> 43) % RESOURCE_NR_FAILURES));
		library->feed.stack_id = (random >> 46) % 20;
		if (call->has_return && (random >> 50) % 2)
			leave(library, call, (random >> 52) % 16, (random >> 56) % 16);
		else
			enter(library, call, (random >> 52) % 16, 8);
	}
	for (size_t i = 0; i < RESOURCE_MAX_KINDS; i++) {
		given += counts[i].gives;
		taken += counts[i].takes;
	}
	taken += heap_tracker_stats(library->feed.tracker)->anomalies[ANOMALY_STILL_HELD];
	assert_int_equal(heap_tracker_finish(library->feed.tracker), 0);
	assert_int_equal(heap_tracker_held(library->feed.tracker, &blocks, &nr), 0);
	assert_int_equal(given - taken, nr);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_is_not_given_back_is_held),
		TEST(the_same_number_is_another_handle_elsewhere),
		TEST(what_is_given_back_twice_is_told),
		TEST(a_function_passes_on_what_another_gives),
		TEST(a_function_takes_through_another),
		TEST(a_failed_call_gives_nothing),
		TEST(half_calls_are_counted),
		TEST(references_are_counted_with_their_stacks),
		TEST(a_history_has_a_limit),
		TEST(a_forked_child_has_copies),
		TEST(system_calls_open_and_close),
		TEST(a_vfork_child_closes_copies),
		TEST(any_order_is_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
