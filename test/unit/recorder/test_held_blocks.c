// SPDX-License-Identifier: GPL-2.0-or-later
/* Which blocks are held, by samples that come in any order. */
#include "common/perf_disk.h"
#include "common/scope.h"
#include "recorder/events/sample_format.h"
#include "recorder/held/held_blocks.h"
#include "recorder/held/held_groups.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define PID   4242
#define LIMIT 100

/* Fields of 8 bytes from offset 16 on, or after a return probe's two addresses. */
static const struct event {
	const char *name;
	uint16_t type;
	bool is_return;
	const char *fields[4];
} events[] = {
	{"leakrec:malloc", 1, false, {"bytes", "caller"}},
	{"leakrec:malloc_ret", 2, true, {"ret"}},
	{"leakrec:free", 3, false, {"mem", "caller"}},
	{"leakrec:realloc", 4, false, {"oldmem", "bytes", "caller"}},
	{"leakrec:realloc_ret", 5, true, {"ret"}},
	{"leakrec:posix_memalign", 6, false, {"memptr", "alignment", "size", "caller"}},
	{"leakrec:posix_memalign_store", 7, false, {"memptr", "block"}},
	{"leakrec:posix_memalign_ret", 8, true, {"ret"}},
	{"leakrec:calloc", 9, false, {"n", "elem_size", "caller"}},
	{"leakrec:calloc_ret_1", 10, true, {"ret"}},
	{"leakrec:operator_new_call", 11, true, {"bytes", "ret"}},
	{"leakrec:operator_delete", 12, false, {"mem", "caller"}},
	{"leakrec:aligned_alloc", 13, false, {"alignment", "bytes", "caller"}},
	{"leakrec:aligned_alloc_ret", 14, true, {"ret"}},
	{"leakrec:malloc_exit", 15, false, {"ret", "caller", "from_entry"}},
	{"leakrec:leak_mark", 16, false, {"text"}},
	{"leakrec:fd__open__socket", 17, false, {"handle"}},
};

enum {
	MALLOC = 1,
	MALLOC_RET,
	FREE,
	REALLOC,
	REALLOC_RET,
	MEMALIGN,
	STORE,
	MEMALIGN_RET,
	CALLOC,
	CALLOC_RET,
	NEW_CALL,
	DELETE,
	ALIGNED,
	ALIGNED_RET,
	MALLOC_EXIT,
	MARK,
	OTHER
};

struct fixture {
	struct held_blocks *held;
	uint64_t now;
	pid_t pid, tid;
};

/* A sample with room for a callchain of two frames. */
struct sample {
	struct plain_head head;
	uint64_t words[3 + 8];
};

static void add_events(struct held_blocks *held)
{
	for (size_t i = 0; i < ARRAY_SIZE(events); i++) {
		const struct event *event = &events[i];
		size_t offset = event->is_return ? 24 : 16, at;
		char format[1024];

		at = (size_t)snprintf(
			format, sizeof(format), "name: x\nID: %d\nformat:\n%s", event->type,
			event->is_return ? "\tfield:u64 __probe_func;\toffset:8;\tsize:8;\n"
					   "\tfield:u64 __probe_ret_ip;\toffset:16;\tsize:8;\n"
					 : "\tfield:u64 __probe_ip;\toffset:8;\tsize:8;\n");
		for (size_t k = 0; k < ARRAY_SIZE(event->fields) && event->fields[k]; k++)
			at += (size_t)snprintf(format + at, sizeof(format) - at,
					       "\tfield:u64 %s;\toffset:%zu;\tsize:8;\tsigned:0;\n",
					       event->fields[k], offset + 8 * k);
		assert_int_equal(held_blocks_add_event(held, event->type, event->name, format), 0);
	}
}

static int set_up(void **state)
{
	static struct fixture fixture;

	fixture = (struct fixture){.now = 100, .pid = PID, .tid = PID};
	assert_int_equal(held_blocks_create(LIMIT, &fixture.held), 0);
	add_events(fixture.held);
	*state = &fixture;
	return 0;
}

static int tear_down(void **state)
{
	held_blocks_destroy(((struct fixture *)*state)->held);
	return 0;
}

/* Feeds an event at @time_ns. Raw data: common fields, the probe's addresses, the fields. */
static void feed_at(struct fixture *fixture, uint64_t time_ns, uint16_t type,
		    const uint64_t *fields, uint64_t site)
{
	const struct event *event = &events[type - 1];
	size_t nr_chain = site ? 3 : 0, nr_before = event->is_return ? 2 : 1;
	struct sample sample = {.head = {.pid = (uint32_t)fixture->pid,
					 .tid = (uint32_t)fixture->tid,
					 .time_ns = time_ns}};
	char raw[4 + 8 + 8 * 6 + 4] = {0};
	struct raw_head *head = (void *)raw;
	uint64_t probe[2] = {0x401000, 0x501234};
	size_t nr = 0;

	while (nr < ARRAY_SIZE(event->fields) && event->fields[nr])
		nr++;
	head->type = type;
	head->size = (unsigned int)(8 + 8 * (nr_before + nr) + 4);
	if (type == MALLOC_EXIT)
		probe[0] += 8; /* from_entry */
	memcpy(raw + 12, probe, 8 * nr_before);
	memcpy(raw + 12 + 8 * nr_before, fields, 8 * nr);
	if (site) {
		sample.words[0] = 2;
		sample.words[1] = (uint64_t)PERF_CONTEXT_USER;
		sample.words[2] = site;
	}
	memcpy(sample.words + nr_chain, raw, head->size + 4);
	sample.head.header = (struct perf_event_header){
		PERF_RECORD_SAMPLE, 0,
		(uint16_t)(sizeof(sample.head) + 8 * nr_chain + head->size + 4)};
	held_blocks_feed_sample(fixture->held, &sample.head.header,
				(void *)(sample.words + nr_chain));
}

#define FEED(type, ...) feed_at(fixture, fixture->now++, type, (const uint64_t[4]){__VA_ARGS__}, 0)

static void feed_task(struct fixture *fixture, uint32_t type, pid_t pid, pid_t ppid, pid_t tid)
{
	struct {
		struct perf_disk_task task;
		struct record_trailer trailer;
	} record = {
		.task = {{type, 0, sizeof(record)},
			 (uint32_t)pid,
			 (uint32_t)ppid,
			 (uint32_t)tid,
			 (uint32_t)ppid,
			 fixture->now},
		.trailer.time_ns = fixture->now++,
	};

	held_blocks_feed_task(fixture->held, &record.task.header);
}

#define CALLER 0x501234

static void allocate(struct fixture *fixture, uint64_t address, uint64_t bytes)
{
	FEED(MALLOC, bytes, CALLER);
	FEED(MALLOC_RET, address);
}

/* The process must hold exactly the @nr blocks: address and size of each. */
static void assert_held(struct fixture *fixture, pid_t pid, size_t nr, const uint64_t (*blocks)[2])
{
	const struct held_block *block;
	size_t at = 0, nr_found = 0;

	held_blocks_apply(fixture->held, fixture->now);
	assert_int_equal(held_blocks_nr(fixture->held, pid), nr);
	while ((block = held_blocks_next(fixture->held, pid, &at))) {
		size_t i = 0;

		while (i < nr && blocks[i][0] != block->address)
			i++;
		assert_true(i < nr);
		assert_int_equal(block->size_bytes, i < nr ? blocks[i][1] : 0);
		nr_found++;
	}
	assert_int_equal(nr_found, nr);
}

#define ASSERT_HELD(...)                                                                           \
	assert_held(fixture, PID, sizeof((const uint64_t[][2]){__VA_ARGS__}) / 16,                 \
		    (const uint64_t[][2]){__VA_ARGS__})
#define ASSERT_NONE(pid) assert_held(fixture, pid, 0, NULL)

static void each_function_counts(void **state)
{
	struct fixture *fixture = *state;

	allocate(fixture, 0x1000, 10);
	allocate(fixture, 0x2000, 20);
	FEED(FREE, 0x1000, CALLER);
	FEED(CALLOC, 3, 7, CALLER);
	FEED(CALLOC_RET, 0x3000);
	FEED(NEW_CALL, 33, 0x4000);
	FEED(NEW_CALL, 34, 0x5000);
	FEED(DELETE, 0x5000, CALLER);
	FEED(FREE, 0, CALLER);
	FEED(FREE, 0x7777, CALLER);
	/* Not about blocks. */
	FEED(MARK, 0x1234);
	FEED(OTHER, 0x2000);
	ASSERT_HELD({0x2000, 20}, {0x3000, 21}, {0x4000, 33});
	assert_int_equal(held_blocks_left_out(fixture->held), 0);
}

static void realloc_moves_fails_and_releases(void **state)
{
	struct fixture *fixture = *state;

	allocate(fixture, 0x1000, 10);
	allocate(fixture, 0x2000, 20);
	allocate(fixture, 0x3000, 30);
	FEED(REALLOC, 0x1000, 100, CALLER); /* moves; calls malloc and free */
	FEED(MALLOC, 100, 0x401010);
	FEED(MALLOC_RET, 0x4000);
	FEED(FREE, 0x1000, 0x401020);
	FEED(REALLOC_RET, 0x4000);
	FEED(REALLOC, 0x2000, 1ULL << 62, CALLER); /* fails */
	FEED(REALLOC_RET, 0);
	FEED(REALLOC, 0x3000, 0, CALLER); /* releases */
	FEED(REALLOC_RET, 0);
	ASSERT_HELD({0x4000, 100}, {0x2000, 20});
}

static void posix_memalign_stores_its_block(void **state)
{
	struct fixture *fixture = *state;

	FEED(MEMALIGN, 0x7ff0, 64, 500, CALLER);
	FEED(STORE, 0x7f00, 0x9999); /* of another pointer */
	FEED(STORE, 0x7ff0, 0x5000);
	FEED(MEMALIGN_RET, 0);
	FEED(MEMALIGN, 0x7ff0, 3, 500, CALLER); /* EINVAL; only the lower half counts */
	FEED(STORE, 0x7ff0, 0x6000);
	FEED(MEMALIGN_RET, 22);
	FEED(MEMALIGN, 0x7ff0, 64, 501, CALLER);
	FEED(STORE, 0x7ff0, 0x8000);
	FEED(MEMALIGN_RET, 0xffffffff00000000);
	ASSERT_HELD({0x5000, 500}, {0x8000, 501});
}

static void nested_calls_count_once(void **state)
{
	struct fixture *fixture = *state;

	FEED(ALIGNED, 64, 100, CALLER); /* as musl: inside of malloc's block */
	FEED(MALLOC, 163, 0x401010);
	FEED(MALLOC_RET, 0x1008);
	FEED(ALIGNED_RET, 0x1040);
	FEED(MALLOC, 40, 0x401010); /* of operator new, which is seen at its return only */
	FEED(MALLOC_RET, 0x2000);
	FEED(NEW_CALL, 40, 0x2000);
	FEED(MALLOC, 10, 0xdead0); /* left by longjmp() */
	FEED(REALLOC, 0, 11, CALLER);
	FEED(REALLOC_RET, 0x3000);
	FEED(MALLOC, 12, CALLER);
	FEED(MALLOC_RET, 0x4000);
	ASSERT_HELD({0x1040, 100}, {0x2000, 40}, {0x3000, 11}, {0x4000, 12});
}

/* A `ret` that several functions share. */
static void an_exit_ends_only_its_functions_call(void **state)
{
	struct fixture *fixture = *state;

	FEED(MALLOC_EXIT, 0x9000, CALLER, 8);
	FEED(MALLOC, 10, CALLER);
	FEED(MALLOC_EXIT, 0x9000, 0x777777, 8);
	FEED(MALLOC_EXIT, 0x9000, CALLER, 9);
	FEED(MALLOC_EXIT, 0x1000, CALLER, 8);
	FEED(MALLOC_EXIT, 0x9000, CALLER, 8);
	ASSERT_HELD({0x1000, 10});
}

/* The rings of CPUs are read one after the other. */
static void a_round_is_put_in_order(void **state)
{
	struct fixture *fixture = *state;

	feed_at(fixture, 30, FREE, (const uint64_t[4]){0x1000, CALLER}, 0);
	feed_at(fixture, 40, MALLOC, (const uint64_t[4]){70, CALLER}, 0);
	feed_at(fixture, 50, MALLOC_RET, (const uint64_t[4]){0x1000}, 0);
	feed_at(fixture, 60, FREE, (const uint64_t[4]){0x1000, CALLER}, 0);
	feed_at(fixture, 10, MALLOC, (const uint64_t[4]){60, CALLER}, 0);
	feed_at(fixture, 20, MALLOC_RET, (const uint64_t[4]){0x1000}, 0);
	held_blocks_apply(fixture->held, 25);
	assert_int_equal(held_blocks_applied_ns(fixture->held), 25);
	fixture->now = 25;
	ASSERT_HELD({0x1000, 60});
	fixture->now = 30;
	ASSERT_NONE(PID);
	fixture->now = 59;
	ASSERT_HELD({0x1000, 70});
	fixture->now = 60;
	ASSERT_NONE(PID);
}

static void processes_are_apart(void **state)
{
	struct fixture *fixture = *state;

	allocate(fixture, 0x1000, 10);
	feed_task(fixture, PERF_RECORD_FORK, PID, PID, PID + 5); /* a thread */
	feed_task(fixture, PERF_RECORD_FORK, PID + 1, PID, PID + 1);
	fixture->pid = fixture->tid = PID + 1;
	FEED(FREE, 0x1000, CALLER); /* of the child's copy */
	allocate(fixture, 0x2000, 20);
	ASSERT_HELD({0x1000, 10});
	assert_held(fixture, PID + 1, 1, (const uint64_t[][2]){{0x2000, 20}});
	feed_task(fixture, PERF_RECORD_EXIT, PID, 1, PID + 5);
	ASSERT_HELD({0x1000, 10});
	feed_task(fixture, PERF_RECORD_EXIT, PID, 1, PID);
	ASSERT_NONE(PID);
	assert_held(fixture, PID + 1, 1, (const uint64_t[][2]){{0x2000, 20}});
	feed_task(fixture, PERF_RECORD_FORK, PID + 1, 1, PID + 1); /* its number again */
	ASSERT_NONE(PID + 1);
}

static void exec_ends_the_heap(void **state)
{
	struct fixture *fixture = *state;
	struct {
		struct perf_disk_comm comm;
		char name[8];
		struct record_trailer trailer;
	} record = {
		.comm = {{PERF_RECORD_COMM, 0, sizeof(record)}, PID, PID},
	};

	allocate(fixture, 0x1000, 10);
	record.trailer.time_ns = fixture->now++;
	held_blocks_feed_task(fixture->held, &record.comm.header);
	ASSERT_HELD({0x1000, 10}); /* it only has a new name */
	record.comm.header.misc = PERF_RECORD_MISC_COMM_EXEC;
	record.trailer.time_ns = fixture->now++;
	held_blocks_feed_task(fixture->held, &record.comm.header);
	ASSERT_NONE(PID);
}

static void what_has_no_room_is_counted(void **state)
{
	struct fixture *fixture = *state;

	for (uint64_t i = 1; i <= LIMIT + 7; i++)
		allocate(fixture, i << 12, i);
	held_blocks_apply(fixture->held, fixture->now);
	assert_int_equal(held_blocks_nr(fixture->held, PID), LIMIT);
	assert_int_equal(held_blocks_left_out(fixture->held), 7);
	/* A block at a known address needs no room. */
	allocate(fixture, 1 << 12, 5);
	FEED(FREE, 2 << 12, CALLER);
	allocate(fixture, 1 << 30, 5);
	held_blocks_apply(fixture->held, fixture->now);
	assert_int_equal(held_blocks_nr(fixture->held, PID), LIMIT);
	assert_int_equal(held_blocks_left_out(fixture->held), 7);
	/* Its size was given before the recording. */
	feed_task(fixture, PERF_RECORD_EXIT, PID, 1, PID);
	allocate(fixture, 0x1000, 1);
	FEED(MALLOC_RET, 0x1000);
	ASSERT_NONE(PID);
	assert_int_equal(held_blocks_left_out(fixture->held), 8);
}

/* Against a list that is searched from its beginning. */
static void many_blocks_stay_apart(void **state)
{
	struct held_table table = {0};
	static uint64_t sizes[512];
	uint64_t random = 1;
	struct held_block taken;
	size_t nr = 0;

	(void)state;
	for (int i = 0; i < 200000; i++) {
		uint64_t slot;

		random = random * 6364136223846793005 + 1442695040888963407;
		slot = random >> 55;
		if (random >> 20 & 1) {
			struct held_block block = {(slot + 1) << 4, (uint64_t)i + 1, 0, 0};

			nr += !sizes[slot];
			sizes[slot] = block.size_bytes;
			assert_true(held_table_put(&table, &block));
		} else {
			bool was_held = held_table_take(&table, (slot + 1) << 4, &taken);

			assert_int_equal(was_held, sizes[slot] != 0);
			if (was_held)
				assert_int_equal(taken.size_bytes, sizes[slot]);
			nr -= was_held;
			sizes[slot] = 0;
		}
		assert_int_equal(table.nr, nr);
	}
	for (uint64_t i = 0; i < ARRAY_SIZE(sizes); i++)
		assert_int_equal(held_table_find(&table, (i + 1) << 4) != NULL, sizes[i] != 0);
	held_table_deinit(&table);
}

static void the_site_is_the_stack_of_the_allocation(void **state)
{
	struct fixture *fixture = *state;
	const struct held_block *block;
	uint64_t sites[3] = {0};
	size_t at = 0;

	for (uint64_t i = 0; i < 3; i++) {
		FEED(MALLOC, 10, CALLER);
		feed_at(fixture, fixture->now++, MALLOC_RET, (const uint64_t[4]){(i + 1) << 12},
			i < 2 ? 0x601234 : 0x605678);
	}
	held_blocks_apply(fixture->held, fixture->now);
	while ((block = held_blocks_next(fixture->held, PID, &at)))
		sites[(block->address >> 12) - 1] = block->site;
	assert_true(sites[0] == sites[1]);
	assert_true(sites[0] != sites[2]);
	assert_true(sites[0] && sites[2]);
}

/* A size that reaches behind the record. */
static void a_cut_sample_is_ignored(void **state)
{
	struct fixture *fixture = *state;
	struct sample sample = {
		.head = {.header = {PERF_RECORD_SAMPLE, 0, sizeof(sample.head) + 16},
			 .pid = PID,
			 .tid = PID,
			 .time_ns = 1}};
	struct raw_head *raw = (void *)sample.words;

	raw->type = MALLOC;
	raw->size = 100;
	held_blocks_feed_sample(fixture->held, &sample.head.header, raw);
	raw->size = 12; /* without its fields */
	held_blocks_feed_sample(fixture->held, &sample.head.header, raw);
	FEED(MALLOC_RET, 0x1000);
	ASSERT_HELD({0x1000, 0});
}

/* What held_groups_visit() shows. */
struct shown {
	size_t nr_groups, nr_blocks, most;
	uint64_t callers; /* the sum of the frames outside of the function and its caller */
};

static int show_group(void *context, const struct held_group *group)
{
	struct shown *shown = context;

	shown->nr_groups++;
	shown->nr_blocks += group->nr;
	if (group->nr > shown->most)
		shown->most = group->nr;
	assert_string_equal(group->stack.schema->function, "malloc");
	assert_int_equal(group->stack.nr, 4);
	assert_true(group->stack.chain[0] == (uint64_t)PERF_CONTEXT_USER);
	assert_int_equal(group->stack.chain[1], 0x401000);
	assert_int_equal(group->stack.chain[2], CALLER);
	shown->callers += group->stack.chain[3];
	for (size_t i = 0; i < group->nr; i++)
		assert_int_equal(group->values[3 * i + 1], group->values[3 * i] >> 12 & 0xfff);
	return 0;
}

static struct shown show(struct fixture *fixture)
{
	struct shown shown = {0};

	held_blocks_apply(fixture->held, fixture->now);
	assert_int_equal(held_groups_visit(fixture->held, 10, show_group, &shown), 0);
	return shown;
}

static void allocate_by(struct fixture *fixture, uint64_t address, uint64_t frame)
{
	FEED(MALLOC, address >> 12 & 0xfff, CALLER);
	feed_at(fixture, fixture->now++, MALLOC_RET, &address, frame);
}

static void blocks_keep_their_stacks(void **state)
{
	struct fixture *fixture = *state;
	struct shown shown;

	assert_int_equal(held_blocks_keep_stacks(fixture->held), 0);
	for (uint64_t i = 1; i <= 24; i++)
		allocate_by(fixture, 0x1000 * i, 0x600000 + i % 2);
	fixture->pid++;
	allocate_by(fixture, 0x1000, 0x600000);
	shown = show(fixture);
	assert_int_equal(shown.nr_blocks, 25);
	assert_int_equal(shown.nr_groups, 5); /* of 10 at most */
	assert_int_equal(shown.most, 10);
	assert_int_equal(shown.callers, 5 * 0x600000 + 2);
	assert_int_equal(held_blocks_one_of(fixture->held), 1);
}

static void more_blocks_than_the_limit_are_a_sample(void **state)
{
	struct fixture *fixture = *state;
	struct shown shown;
	uint64_t one_of;

	assert_int_equal(held_blocks_keep_stacks(fixture->held), 0);
	for (uint64_t i = 1; i <= 40 * LIMIT; i++)
		allocate_by(fixture, 0x1000 * i, 0x600000);
	shown = show(fixture);
	one_of = held_blocks_one_of(fixture->held);
	assert_in_range(one_of, 32, 256);
	assert_in_range(shown.nr_blocks, 1, LIMIT);
	assert_int_equal(held_blocks_left_out(fixture->held), 0);
	/* Those that are chosen are released like others. */
	for (uint64_t i = 1; i <= 40 * LIMIT; i++)
		FEED(FREE, 0x1000 * i, CALLER);
	assert_int_equal(show(fixture).nr_blocks, 0);
	assert_int_equal(held_blocks_one_of(fixture->held), one_of);
}

/* Each block has a stack of its own, and only the last hundred are held. */
static void stacks_without_blocks_are_dropped(void **state)
{
	struct fixture *fixture = *state;
	const uint64_t nr = HELD_STACKS_MAX_WORDS / 4;
	struct shown shown;

	assert_int_equal(held_blocks_keep_stacks(fixture->held), 0);
	for (uint64_t i = 1; i <= nr; i++) {
		if (i > LIMIT)
			FEED(FREE, 0x1000 * (i - LIMIT), CALLER);
		allocate_by(fixture, 0x1000 * i, 0x600000 + i);
		if (i % 1024 == 0)
			held_blocks_apply(fixture->held, fixture->now);
	}
	shown = show(fixture);
	assert_int_equal(shown.nr_blocks, LIMIT);
	assert_int_equal(shown.nr_groups, LIMIT);
	assert_in_range(held_blocks_stacks(fixture->held)->nr_words, 1, HELD_STACKS_MAX_WORDS / 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(each_function_counts, set_up, tear_down),
		cmocka_unit_test_setup_teardown(realloc_moves_fails_and_releases, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(posix_memalign_stores_its_block, set_up, tear_down),
		cmocka_unit_test_setup_teardown(nested_calls_count_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(an_exit_ends_only_its_functions_call, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_round_is_put_in_order, set_up, tear_down),
		cmocka_unit_test_setup_teardown(processes_are_apart, set_up, tear_down),
		cmocka_unit_test_setup_teardown(exec_ends_the_heap, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_has_no_room_is_counted, set_up, tear_down),
		cmocka_unit_test(many_blocks_stay_apart),
		cmocka_unit_test_setup_teardown(the_site_is_the_stack_of_the_allocation, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_cut_sample_is_ignored, set_up, tear_down),
		cmocka_unit_test_setup_teardown(blocks_keep_their_stacks, set_up, tear_down),
		cmocka_unit_test_setup_teardown(more_blocks_than_the_limit_are_a_sample, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(stacks_without_blocks_are_dropped, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
