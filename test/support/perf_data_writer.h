/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Makes small recordings in memory for tests, as perf record would write them: events with formats,
 * and records in the order in which they are added. It writes perf.data files and perf's pipe
 * format.
 *
 * It is independent of the reader that it tests: it has its own copy of the format's numbers. It
 * ends the test if memory runs out.
 */
#ifndef LEAKTOOLS_TEST_SUPPORT_PERF_DATA_WRITER_H
#define LEAKTOOLS_TEST_SUPPORT_PERF_DATA_WRITER_H

#include "common/schema/probe_schema.h"

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct perf_data_writer;

/* What all events record beside what each form needs (perf_data_writer_create()). */
#define PERF_DATA_DEFAULT_SAMPLE_TYPE                                                              \
	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |            \
	 PERF_SAMPLE_CPU | PERF_SAMPLE_RAW)

struct perf_data_options {
	uint64_t sample_type; /* 0: PERF_DATA_DEFAULT_SAMPLE_TYPE and CALLCHAIN */
	uint64_t regs_mask;   /* with PERF_SAMPLE_REGS_USER */
	uint64_t read_format; /* with PERF_SAMPLE_READ */
	uint64_t first_id;    /* 0: a number; the others follow. Another recording has others */
	bool no_inherit;
	bool no_sample_id_all; /* records other than samples have no trailer */
	uint32_t attr_bytes;   /* 0: this system's; others are cut or filled with 0xff */
};

struct perf_data_sample {
	int event; /* as returned when it was added */
	pid_t pid, tid;
	uint32_t cpu;
	uint64_t time_ns;
	uint64_t ip;
	const uint64_t *fields; /* one for each of the event's fields, in their order */
	const uint64_t
		*callchain; /* user addresses, innermost first; written after a kernel part */
	size_t nr_callchain;
	const uint64_t *regs; /* NULL: ABI_NONE */
	const uint8_t *stack;
	size_t stack_bytes; /* a multiple of 8 */
};

/* @options: NULL for the defaults. */
struct perf_data_writer *perf_data_writer_create(const struct perf_data_options *options);
void perf_data_writer_destroy(struct perf_data_writer *writer);

/*
 * Adds a tracepoint. @fields: declarations as in a format, one a line: "u64 bytes\ns32 arg1".
 * Types: u8-u64, s8-s64. Returns the event's number.
 */
int perf_data_add_event(struct perf_data_writer *writer, const char *system, const char *name,
			const char *fields);

/*
 * Adds a probe as leakprobe registers it, in group "leakprobe_test", with the fields, all u64:
 *   entry   __probe_ip, the schema's arguments, caller
 *   return  __probe_func, __probe_ret_ip, ret
 *   store   __probe_ip, memptr, block
 *   call    __probe_func, __probe_ret_ip, the schema's arguments, ret
 */
int perf_data_add_probe(struct perf_data_writer *writer, const char *function,
			enum probe_point point);

/* task:task_newtask, with the fields pid and clone_flags. */
int perf_data_add_newtask(struct perf_data_writer *writer);

/* An event that is not a tracepoint, without samples. */
int perf_data_add_dummy(struct perf_data_writer *writer);

/* Records. Those with a time are sorted by FINISHED_ROUND; time 0 means none. */
void perf_data_sample(struct perf_data_writer *writer, const struct perf_data_sample *sample);
void perf_data_mmap(struct perf_data_writer *writer, pid_t pid, uint64_t time_ns, uint64_t start,
		    uint64_t len, uint64_t file_offset, const char *path);
/* MMAP2 with a build-id of 20 bytes @byte. */
void perf_data_mmap_build_id(struct perf_data_writer *writer, pid_t pid, uint64_t time_ns,
			     uint64_t start, uint64_t len, const char *path, uint8_t byte);
void perf_data_comm(struct perf_data_writer *writer, pid_t pid, pid_t tid, uint64_t time_ns,
		    const char *comm, bool exec);
void perf_data_fork(struct perf_data_writer *writer, pid_t pid, pid_t tid, pid_t ppid, pid_t ptid,
		    uint64_t time_ns);
void perf_data_exit(struct perf_data_writer *writer, pid_t pid, pid_t tid, uint64_t time_ns);
void perf_data_lost(struct perf_data_writer *writer, uint64_t time_ns, uint64_t lost);
/* The same, in a ring that @event writes to. */
void perf_data_lost_on(struct perf_data_writer *writer, int event, uint32_t cpu, uint64_t time_ns,
		       uint64_t lost);
void perf_data_lost_samples(struct perf_data_writer *writer, uint64_t lost);
void perf_data_finished_round(struct perf_data_writer *writer);
/* Any record, without a trailer. */
void perf_data_raw_record(struct perf_data_writer *writer, uint32_t type, uint16_t misc,
			  const void *body, size_t body_bytes);
/* Bytes that are not a record. */
void perf_data_raw_bytes(struct perf_data_writer *writer, const void *bytes, size_t nr_bytes);
/* A TRACING_DATA record with all formats. The file then has no such section. */
void perf_data_tracing_data_record(struct perf_data_writer *writer);

/* An entry of the build-ids, of 20 bytes @byte. */
void perf_data_build_id(struct perf_data_writer *writer, const char *path, uint8_t byte);

enum perf_data_form {
	PERF_DATA_FILE,
	PERF_DATA_FILE_UNFINISHED,  /* data.size 0, nothing after the data */
	PERF_DATA_FILE_PROVISIONAL, /* the same, sections and their table before the data */
	PERF_DATA_PIPE,
};

/* The recording so far; the caller frees it. */
uint8_t *perf_data_image(const struct perf_data_writer *writer, enum perf_data_form form,
			 size_t *ret_bytes);

/* Writes it to @fd. Returns 0 or a negative errno. */
int perf_data_write(const struct perf_data_writer *writer, enum perf_data_form form, int fd);

#endif
