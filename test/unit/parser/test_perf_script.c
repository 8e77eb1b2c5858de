/* SPDX-License-Identifier: GPL-2.0-or-later */
/* perf script's text: its lines, and a whole text read as a recording. */
#include "parser/perfdata/perf_script_line.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "test/unit/parser/perf_input_harness.h"
#include "unwind/stacks/stack_store.h"

static struct perf_script_event parse_event(const char *text, char buffer[256])
{
	struct perf_script_event event;

	snprintf(buffer, 256, "%s", text);
	assert_true(perf_script_parse_event(buffer, &event));
	return event;
}

static void events(void **state)
{
	char buffer[256];
	struct perf_script_event event = parse_event(
		"my prog [1]  41/42 [003] 11967.073658:  1  a_b:malloc: (7f30) bytes=3", buffer);

	assert_string_equal(event.comm, "my prog [1]");
	assert_int_equal(event.pid, 41);
	assert_int_equal(event.tid, 42);
	assert_int_equal(event.cpu, 3);
	assert_int_equal(event.time_ns, 11967073658000);
	assert_string_equal(event.name, "malloc");
	assert_true(event.has_address);
	assert_int_equal(event.address, 0x7f30);
	assert_string_equal(event.rest, "bytes=3");

	event = parse_event("   sh 42 1.000000007: g:free_ret: (10 <- 20)", buffer);
	assert_string_equal(event.comm, "sh");
	assert_int_equal(event.pid, -1);
	assert_int_equal(event.time_ns, 1000000007);
	assert_int_equal(event.return_address, 0x20);
	assert_string_equal(event.rest, "");

	event = parse_event("sh 42 [000] 1.5: PERF_RECORD_FORK(43:43):(42:42)", buffer);
	assert_null(event.name);
	assert_string_equal(event.rest, "PERF_RECORD_FORK(43:43):(42:42)");
}

static void no_events(void **state)
{
	static const char *const lines[] = {
		"",
		"sh",
		"sh 42",
		"sh 42 [000]",
		"sh 42 [000] 12:",
		"sh 42 [000] 12.1234567890: a:b: ",
		"sh 99999999999 [000] 12.5: a:b: ",
		"sh 42 [0 12.5: a:b: ",
		"sh 42 99999999999999999999.5: a:b: ",
	};

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		struct perf_script_event event;
		char buffer[256];

		snprintf(buffer, sizeof(buffer), "%s", lines[i]);
		assert_false(perf_script_parse_event(buffer, &event));
	}
}

static struct perf_script_frame parse_frame(const char *text, char buffer[256])
{
	struct perf_script_frame frame;

	snprintf(buffer, 256, "%s", text);
	assert_true(perf_script_parse_frame(buffer, &frame));
	return frame;
}

static void frames(void **state)
{
	char buffer[256];
	struct perf_script_frame frame =
		parse_frame("\t   98930 malloc+0x1f (/usr/lib/libc.so.6)", buffer);

	assert_int_equal(frame.address, 0x98930);
	assert_string_equal(frame.symbol, "malloc");
	assert_int_equal(frame.symbol_offset, 0x1f);
	assert_string_equal(frame.module, "/usr/lib/libc.so.6");

	frame = parse_frame("\t 10 f(int (*)(int), char)+0x0 (/a (b)/c)", buffer);
	assert_string_equal(frame.symbol, "f(int (*)(int), char)");
	assert_string_equal(frame.module, "/a (b)/c");

	frame = parse_frame("\t 7f1faa4ee8d0 malloc+0x1f (/lib/libc.so.6+0x98930)", buffer);
	assert_int_equal(frame.address, 0x98930);
	assert_string_equal(frame.module, "/lib/libc.so.6");

	frame = parse_frame("\t 7f1faa4ee8d0 f+0x1 ([vdso]+0x9a0)", buffer);
	assert_int_equal(frame.address, 0x7f1faa4ee8d0);

	frame = parse_frame("\t 7f10 [unknown] ([unknown])", buffer);
	assert_null(frame.symbol);
	assert_null(frame.module);

	frame = parse_frame("\t 7f10 operator+ (inlined)", buffer);
	assert_true(frame.inlined);
	assert_string_equal(frame.symbol, "operator+");
}

static const char text[] =
	"# cmdline : perf record\n"
	"prog  7/7 [000] 1.000001: probe_libc:malloc: (7f30) arg1=0x20\n"
	"\t 30 malloc+0x0 (/lib/libc.so.6)\n"
	"\n"
	"prog  7/7 [000] 1.000002: probe_libc:malloc__return: (7f30 <- 5510) arg1=0x9000\n"
	"\t 10 make+0x4 (/bin/prog)\n"
	"\t 18 inner (inlined)\n"
	"\t 18 main+0x8 (/bin/prog)\n"
	"prog  7/8 [001] 1.000003: probe_libc:free: (7f80) mem=0x9000\n"
	"prog  7/8 [001] 1.000004: sched:sched_switch: prev_comm=prog\n"
	"prog  7/8 [001] 1.000005: task:task_newtask: pid=9 comm=prog clone_flags=4100 oom=0\n"
	"prog  7/8 [001] 1.000006: PERF_RECORD_EXIT(7:8):(7:7)\n"
	"prog  7/7 [001] 1.000007: PERF_RECORD_COMM exec: a b:7/7\n";

static void a_whole_text(void **state)
{
	_cleanup_reading_ struct reading reading = read_bytes((const uint8_t *)text, strlen(text));

	assert_int_equal(reading.ret, 0);
	assert_string_equal(reading.messages, "");
	assert_int_equal(reading.stats.probe_samples, 3);
	assert_int_equal(reading.stats.samples, 5);
	assert_string_equal(
		reading.log,
		"comm t=1000001000 #0 7/7 prog\n"
		"mmap t=0 #0 7/7 pid=7 0x1000000000000+0x1000000000000@0x0 /lib/libc.so.6 x\n"
		"malloc t=1000001000 #1 7/7 bytes=0x20 at=0x7f30 from=0x0 chain=0x1000000000030\n"
		"mmap t=0 #0 7/7 pid=7 0x2000000000000+0x1000000000000@0x0 /bin/prog x\n"
		"malloc t=1000002000 #2 7/7 ret=0x9000 at=0x7f30 to=0x5510 "
		"chain=0x1000000000030,0x2000000000010,0x2000000000018\n"
		"comm t=1000003000 #2 7/8 prog\n"
		"mmap t=0 #0 7/7 pid=7 0x3000000000000+0x1000000000000@0x0 /unknown x\n"
		"free t=1000003000 #3 7/8 mem=0x9000 at=0x7f80 from=0x0 chain=0x3000000000080\n"
		"task_newtask t=1000005000 #3 7/8 new=9 flags=0x4100\n"
		"exit t=1000006000 #3 7/8 7/8 by 7/7\n"
		"comm t=1000007000 #3 7/7 a b exec\n");
}

/* What a new process or program has mapped is not noted for it, but said when a stack shows it. */
static void children(void **state)
{
	static const char forking[] =
		"prog  7/7 [000] 1.000001: probe_libc:malloc: (7f30) arg1=0x1\n"
		"\t 10 make+0x4 (/bin/prog)\n"
		"prog  7/7 [000] 1.000002: probe_libc:malloc: (7f30) arg1=0x2\n"
		"\t 10 make+0x4 (/bin/prog)\n"
		"prog  7/7 [000] 1.000003: PERF_RECORD_FORK(9:9):(7:7)\n"
		"prog  9/9 [000] 1.000004: probe_libc:malloc: (7f30) arg1=0x3\n"
		"\t 10 make+0x4 (/bin/prog)\n"
		"prog  9/9 [000] 1.000005: PERF_RECORD_COMM exec: prog:9/9\n"
		"prog  9/9 [000] 1.000006: probe_libc:malloc: (7f30) arg1=0x4\n"
		"\t 10 make+0x4 (/bin/prog)\n"
		"prog  7/7 [000] 1.000007: probe_libc:malloc: (7f30) arg1=0x5\n"
		"\t 10 make+0x4 (/bin/prog)\n";
	_cleanup_reading_ struct reading reading =
		read_bytes((const uint8_t *)forking, strlen(forking));
	static const char *const mapping[] = {"pid=7 ", "pid=9 ", "pid=9 "};
	const char *at = reading.log;

	assert_int_equal(reading.ret, 0);
	assert_int_equal(reading.stats.probe_samples, 5);
	for (size_t i = 0; i < ARRAY_SIZE(mapping); i++) {
		at = strstr(at, mapping[i]);
		assert_non_null(at);
		assert_non_null(strstr(at, "/bin/prog"));
		at++;
	}
	assert_null(strstr(at, "pid="));
}

/* perf script prints twice what perf record wrote twice. */
static void repeated_events(void **state)
{
	static const char repeated[] =
		"prog  7/7 [000] 1.000001: probe_libc:free: (7f80) mem=0x9000\n"
		"\t 10 make+0x4 (/bin/prog)\n"
		"\n"
		"prog  7/7 [000] 1.000001: probe_libc:free: (7f80) mem=0x9000\n"
		"\t 10 make+0x4 (/bin/prog)\n"
		"\n"
		"prog  7/7 [000] 1.000001: probe_libc:free: (7f80) mem=0xa000\n"
		"prog  7/7 [000] 1.000001: probe_libc:free: (7f80) mem=0xa000 caller=0x10\n"
		"prog  7/8 [000] 1.000001: probe_libc:free: (7f80) mem=0xa000\n"
		"prog  7/8 [000] 1.000002: probe_libc:free: (7f80) mem=0xa000\n"
		"prog  7/8 [000] 1.000002: probe_libc:free: (7f80) mem=0x0\n"
		"prog  7/8 [000] 1.000002: probe_libc:free: (7f80) mem=0x0\n";
	_cleanup_reading_ struct reading reading =
		read_bytes((const uint8_t *)repeated, strlen(repeated));

	assert_int_equal(reading.ret, 0);
	assert_int_equal(reading.stats.probe_samples, 7);
	assert_int_equal(reading.stats.repeated, 1);
	assert_non_null(strstr(reading.log, "free t=1000001000 #2 7/7 mem=0xa000"));
}

static void other_texts(void **state)
{
	static const char prose[] = "It was a dark and stormy night.\n";
	static const char others[] = "sh 7 [000] 1.5: sched:sched_switch: a=b\n";
	_cleanup_reading_ struct reading first = read_bytes((const uint8_t *)prose, strlen(prose));
	_cleanup_reading_ struct reading second =
		read_bytes((const uint8_t *)others, strlen(others));

	assert_int_equal(first.ret, -EINVAL);
	assert_non_null(strstr(first.messages, "neither a perf.data file"));
	assert_int_equal(second.ret, -ENODATA);
	assert_non_null(strstr(second.messages, "no allocator events"));
}

/* Longer lines than perf's, and one without an end. */
static void endless_lines(void **state)
{
	size_t nr = (size_t)3 << 20;
	_cleanup_free_ char *bytes = malloc(nr);
	_cleanup_reading_ struct reading reading = {0};

	assert_non_null(bytes);
	memset(bytes, '1', nr);
	bytes[nr / 2] = '\n';
	memcpy(bytes + nr / 2 + 1, text, sizeof(text) - 1);
	reading = read_bytes((const uint8_t *)bytes, nr);
	assert_int_equal(reading.ret, 0);
	assert_int_equal(reading.stats.probe_samples, 3);
}

/* Newer perfs print addresses in memory, and a substitute for the name of a thread that has ended.
 */
static void addresses_in_memory(void **state)
{
	static const char line[] = "prog 7/7 [0] 1.000001: probe_libc:malloc: (7f30) arg1=0x20\n"
				   "\t 55da9a5868a8 main+0x8 (/bin/prog)\n"
				   ":7   7/7 [0] 1.000002: probe_libc:free: (7f80) mem=0x9000\n";
	_cleanup_reading_ struct reading reading = read_bytes((const uint8_t *)line, strlen(line));

	assert_int_equal(reading.ret, 0);
	assert_non_null(strstr(reading.messages, "has addresses in memory and none in files"));
	assert_non_null(strstr(reading.log, " prog\n"));
	assert_null(strstr(reading.log, " :7\n"));
}

extern const char __executable_start[]; /* the linker's */

struct named_stacks {
	struct stack_store *store;
	const char *expected; /* the name of each sample's outermost function */
};

static int map(void *context, const struct perf_mmap_record *record)
{
	const struct named_stacks *stacks = context;

	return stack_store_map(stacks->store, &record->mapping);
}

static int name(void *context, const char *path, uint64_t file_offset, const char *function,
		uint64_t function_offset)
{
	const struct named_stacks *stacks = context;

	return stack_store_name_place(stacks->store, path, file_offset, function, function_offset);
}

static int expect_name(void *context, const struct perf_sample *sample)
{
	const struct named_stacks *stacks = context;
	struct stack_frame frame;
	uint32_t id;

	assert_int_equal(stack_store_add_callchain(stacks->store, sample->origin.pid,
						   sample->callchain, sample->nr_callchain, &id),
			 0);
	assert_int_equal(stack_store_frame(stacks->store, id, sample->nr_callchain - 1, &frame), 0);
	assert_non_null(frame.function);
	assert_string_equal(frame.function, stacks->expected);
	return 0;
}

/* Reads a stack whose outermost address is the position of this function in this program. */
static void read_named(const char *inner_frames, const char *expected)
{
	_cleanup_close_ int fd = memfd_create("text", MFD_CLOEXEC);
	char path[512] = "";
	struct named_stacks stacks = {.expected = expected};
	struct perf_input_stats stats = {0};
	const struct perf_consumer consumer = {
		.context = &stacks, .on_sample = expect_name, .on_mmap = map, .on_name = name};

	assert_true(readlink("/proc/self/exe", path, sizeof(path) - 1) > 0);
	dprintf(fd,
		"prog 7/7 [0] 1.000001: probe_libc:malloc: (401136) arg1=0x20\n%s"
		"\t %tx perfs_name+0x8 (%s)\n",
		inner_frames, (const char *)read_named - __executable_start + 1, path);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(stack_store_create(NULL, &stacks.store), 0);
	assert_int_equal(perf_input_read(fd, "text", &consumer, &stats), 0);
	assert_int_equal(stats.probe_samples, 1);
	stack_store_destroy(stacks.store);
}

/* What is mapped low, such as programs at 0x400000, has addresses that positions may have, too. */
static void low_addresses_in_memory(void **state)
{
	read_named("\t 7f1faa4ee8d0 malloc+0x0 (/lib/libc.so.6)\n", "perfs_name");
	read_named("\t 401136 malloc+0x0 (/bin/prog)\n", "perfs_name");
	read_named("\t 1136 malloc+0x0 (/bin/prog)\n", "read_named");
	read_named("\t 7f1faa4ee8d0 f+0x0 (/tmp/perf-7.map)\n", "read_named");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events),
		cmocka_unit_test(no_events),
		cmocka_unit_test(frames),
		cmocka_unit_test(addresses_in_memory),
		cmocka_unit_test(low_addresses_in_memory),
		cmocka_unit_test(a_whole_text),
		cmocka_unit_test(repeated_events),
		cmocka_unit_test(other_texts),
		cmocka_unit_test(endless_lines),
		cmocka_unit_test(children),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
