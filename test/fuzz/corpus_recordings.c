/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "test/fuzz/corpus.h"

#include "test/support/perf_data_buffer.h"
#include "test/support/perf_data_writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zstd.h>

#define COMPRESSED 81 /* PERF_RECORD_COMPRESSED of tools/lib/perf/include/perf/event.h */

static void add_events(struct perf_data_writer *writer, bool with_stack)
{
	static const uint64_t regs[3] = {0x1000, 0x7ffe0000, 0x7ffe0008};
	static const uint8_t stack[64] = {1, 2, 3};
	const int events[] = {
		perf_data_add_probe(writer, "malloc", PROBE_ENTRY),
		perf_data_add_probe(writer, "malloc", PROBE_RETURN),
		perf_data_add_probe(writer, "free", PROBE_ENTRY),
		perf_data_add_probe(writer, "calloc", PROBE_CALL),
		perf_data_add_probe(writer, "posix_memalign", PROBE_STORE),
	};

	perf_data_add_newtask(writer);
	perf_data_build_id(writer, "/lib/libc.so.6", 0xab);
	perf_data_comm(writer, 1, 1, 0, "target", true);
	perf_data_mmap(writer, 1, 0, 0x400000, 0x2000, 0x1000, "/bin/target");
	for (uint64_t i = 1; i <= 10; i++) {
		perf_data_sample(writer, &(struct perf_data_sample){
						 .event = events[i % 5],
						 .pid = 1,
						 .tid = 1,
						 .time_ns = 10 * i,
						 .fields = (uint64_t[]){0x7000, i, i, i, i, i},
						 .callchain = (uint64_t[]){0x400000 + i},
						 .nr_callchain = 1,
						 .regs = with_stack ? regs : NULL,
						 .stack = stack,
						 .stack_bytes = with_stack ? sizeof(stack) : 0,
					 });
		if (i % 4 == 0)
			perf_data_finished_round(writer);
	}
	perf_data_fork(writer, 2, 2, 1, 1, 110);
	perf_data_lost(writer, 115, 3);
	perf_data_exit(writer, 1, 1, 120);
}

static void write_form(const char *dir, const char *name, const struct perf_data_writer *writer,
		       enum perf_data_form form)
{
	size_t nr;
	uint8_t *image = perf_data_image(writer, form, &nr);

	corpus_write(dir, name, image, nr);
	free(image);
}

static void write_forms(const char *dir, const char *prefix,
			const struct perf_data_options *options)
{
	static const char *const forms[] = {"file", "unfinished", "provisional", "pipe"};
	struct perf_data_writer *writer = perf_data_writer_create(options);

	add_events(writer, options && options->regs_mask);
	for (int form = PERF_DATA_FILE; form <= PERF_DATA_PIPE; form++) {
		char name[64];

		snprintf(name, sizeof(name), "%s-%s", prefix, forms[form]);
		write_form(dir, name, writer, (enum perf_data_form)form);
	}
	perf_data_writer_destroy(writer);
}

/* An event that is no allocation's, and what two of its samples have. */
struct row {
	const char *system, *name, *fields;
	uint64_t values[2][6];
};

#define AT	 "u64 __probe_ip\n"
#define RETURNED "u64 __probe_func\nu64 __probe_ret_ip\n"

/* Of --pair and --ref. */
static const struct row resources[] = {
	{"leak_pairs",
	 "file__give_call__open",
	 AT "u64 caller\nu64 size",
	 {{1, 9, 64}, {1, 9, 64}}},
	{"leak_pairs",
	 "file__give_ret__open",
	 RETURNED "s32 handle_fail_lt_0",
	 {{1, 9, 3}, {1, 9, 4}}},
	{"leak_pairs", "file__take__close", AT "u64 caller\nu64 handle", {{2, 9, 3}, {2, 9, 7}}},
	{"leak_pairs",
	 "slot__give_call__init",
	 AT "u64 caller\nu64 handle_at",
	 {{3, 9, 0x80}, {3, 9, 0x88}}},
	{"leak_pairs",
	 "slot__give_ret__init",
	 RETURNED "u64 stored\nu64 ret_fail_ne_0",
	 {{3, 9, 5, 0}, {3, 9, 6, 1}}},
	{"leak_pairs", "widget__ref__get", AT "u64 caller\nu64 handle", {{4, 9, 3}, {4, 9, 3}}},
	{"leak_pairs", "widget__unref__put", AT "u64 caller\nu64 handle", {{5, 9, 3}, {5, 9, 3}}},
};

/* Mappings and descriptors. */
static const struct row syscalls[] = {
	{"syscalls",
	 "sys_enter_mmap",
	 "u64 addr\nu64 len\nu64 prot\nu64 flags\nu64 fd\nu64 off",
	 {{0, 0x4000, 3, 0x22}, {0x70000000, 0x2000, 3, 0x32}}},
	{"syscalls",
	 "sys_exit_mmap",
	 "u64 ret\nu64 caller\nu64 inside",
	 {{0x70000000, 9}, {0x70001000, 9}}},
	{"syscalls",
	 "sys_enter_mremap",
	 "u64 addr\nu64 old_len\nu64 new_len\nu64 flags\nu64 new_addr",
	 {{0x70000000, 0x1000, 0x3000, 1}, {0x70001000, 0x1000, 0x1000, 3, 0x90000000}}},
	{"syscalls", "sys_exit_mremap", "u64 ret", {{0x80000000}, {0x90000000}}},
	{"syscalls",
	 "sys_enter_munmap",
	 "u64 addr\nu64 len",
	 {{0x70001000, 0x1000}, {0x80000000, 0x9000}}},
	{"syscalls", "sys_exit_munmap", "u64 ret", {{0}, {0}}},
};

static const struct row descriptors[] = {
	{"syscalls", "sys_enter_openat", "u64 unused", {{0}, {0}}},
	{"syscalls", "sys_exit_openat", "u64 ret\nu64 caller", {{3, 9}, {UINT64_MAX, 9}}},
	{"syscalls", "sys_enter_pipe2", "u64 unused", {{0}, {0}}},
	{"syscalls",
	 "sys_exit_pipe2",
	 "u64 ret\nu64 pair",
	 {{0, 4 + (5ull << 32)}, {0, 6 + (7ull << 32)}}},
	{"syscalls", "sys_enter_close", "u64 fd", {{3}, {9}}},
	{"syscalls", "sys_exit_close", "u64 ret", {{0}, {UINT64_MAX}}},
	{"syscalls",
	 "sys_enter_close_range",
	 "u64 fd\nu64 max_fd\nu64 flags",
	 {{5, 6, 0}, {0, UINT64_MAX, 4}}},
	{"syscalls", "sys_exit_close_range", "u64 ret", {{0}, {0}}},
};

/* What leakrec itself writes. */
static const struct row own[] = {
	{"leakrec", "recording", "u32 end", {{0}, {1}}},
	{"leakrec", "window", "u32 open\nu64 pace", {{1, 3}, {0, 3}}},
	{"leakrec",
	 "look",
	 "u32 state\nu64 address\nu64 allocated",
	 {{1, 0x9000, 20}, {0, 0x9001, 20}}},
	{"leakrec",
	 "calls",
	 "u32 number\nu64 address\nu64 since\nu64 all\nu64 observed\nu64 blocks",
	 {{1, 0x400020, 5, 9, 4, 4}, {1, 0x400020, 5, 90, 8, 8}}},
	{"leakrec",
	 "segment",
	 "u32 number\nu64 started\nu64 lost\nu64 one_of",
	 {{1, 5, 0, 1}, {2, 5, 2, 4}}},
	{"leakrec",
	 "memory",
	 "u32 turn\nu64 anon\nu64 file\nu64 shared\nu64 swap\nu64 data",
	 {{1, 4096, 1, 2, 3, 4}, {2, 8192, 1, 2, 3, 4}}},
	{"leakrec",
	 "reach",
	 "u32 class\nu64 address\nu64 bytes\nu64 stopped\nu64 holder",
	 {{1, 1, 16, 90, 0}, {2, 6, 16, 90, 1}}},
	{"leakrec", "doubt", "u32 by_signal\nu64 number", {{0, 1}, {1, 2}}},
	{"leakrec", "mark", "u32 number", {{1}, {2}}},
};

static void sample(struct perf_data_writer *writer, int event, uint64_t time_ns,
		   const uint64_t *fields)
{
	perf_data_sample(writer, &(struct perf_data_sample){
					 .event = event,
					 .pid = 1,
					 .tid = 1,
					 .time_ns = time_ns,
					 .fields = fields,
					 .callchain = (uint64_t[]){0x400010, 0x400020},
					 .nr_callchain = 2,
				 });
}

/* Some blocks, and each event twice. */
static struct perf_data_writer *make_events(const struct row *rows, size_t nr)
{
	struct perf_data_writer *writer = perf_data_writer_create(NULL);
	int call = perf_data_add_probe(writer, "malloc", PROBE_CALL), events[9];

	for (size_t i = 0; i < nr; i++)
		events[i] =
			perf_data_add_event(writer, rows[i].system, rows[i].name, rows[i].fields);
	perf_data_comm(writer, 1, 1, 1, "target", true);
	perf_data_mmap(writer, 1, 2, 0x400000, 0x2000, 0x1000, "/nowhere/target");
	for (uint64_t turn = 0; turn < 2; turn++) {
		for (uint64_t i = 0; i < 4; i++)
			sample(writer, call, 1000 * turn + 10 + i,
			       (const uint64_t[]){0x401000, 0x400020, 3072,
						  0x9000 + turn * 0x100 + i});
		for (size_t i = 0; i < nr; i++)
			sample(writer, events[i], 1000 * turn + 100 + 10 * i, rows[i].values[turn]);
		perf_data_finished_round(writer);
	}
	perf_data_exit(writer, 1, 1, 9000);
	return writer;
}

/* Packs the records so far into compressed ones. */
static void compress(struct perf_data_writer *writer)
{
	struct buffer records = writer->records;
	size_t room = ZSTD_compressBound(records.nr);
	uint8_t *packed = malloc(room);
	size_t nr = packed ? ZSTD_compress(packed, room, records.bytes, records.nr, 1) : 0;

	if (!packed || ZSTD_isError(nr))
		corpus_fail("memory");
	writer->records = (struct buffer){0};
	perf_data_raw_record(writer, COMPRESSED, 0, packed, nr);
	free(packed);
	free(records.bytes);
}

void corpus_write_recordings(const char *dir)
{
	static const struct perf_data_options dumps = {
		.sample_type = PERF_DATA_DEFAULT_SAMPLE_TYPE | PERF_SAMPLE_REGS_USER |
			       PERF_SAMPLE_STACK_USER,
		.regs_mask = 0x1c0,
	};
#define ROWS(name)                                                                                 \
	{                                                                                          \
#name, name, sizeof(name) / sizeof((name)[0])                                      \
	}
	static const struct {
		const char *name;
		const struct row *rows;
		size_t nr;
	} kinds[] = {ROWS(resources), ROWS(syscalls), ROWS(descriptors), ROWS(own)};

	write_forms(dir, "chains", NULL);
	write_forms(dir, "dumps", &dumps);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct perf_data_writer *writer = make_events(kinds[i].rows, kinds[i].nr);
		char name[64];

		write_form(dir, kinds[i].name, writer, PERF_DATA_FILE);
		compress(writer);
		snprintf(name, sizeof(name), "%s-compressed", kinds[i].name);
		write_form(dir, name, writer, PERF_DATA_PIPE);
		perf_data_writer_destroy(writer);
	}
}
