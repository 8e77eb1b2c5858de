/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads a recording, and keeps as text what the reader delivered and reported. */
#ifndef LEAKTOOLS_TEST_PERF_INPUT_HARNESS_H
#define LEAKTOOLS_TEST_PERF_INPUT_HARNESS_H

#include "common/scope.h"
#include "parser/perfdata/perf_input.h"
#include "parser/records/block_prefetch.h"
#include "test/support/perf_data_writer.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

struct reading {
	int ret;
	struct perf_input_stats stats;
	char *log;	/* a line for each callback */
	char *messages; /* what went to stderr */
};

static inline void print_origin(FILE *log, const char *what, const struct perf_origin *origin)
{
	fprintf(log, "%s t=%" PRIu64 " #%" PRIu64 " %d/%d", what, origin->time_ns, origin->sequence,
		origin->pid, origin->tid);
}

static inline int log_sample(void *context, const struct perf_sample *sample)
{
	FILE *log = context;
	const struct perf_event_desc *event = sample->event;

	print_origin(log, event->name ? event->name : "unnamed", &sample->origin);
	if (event->schema && probe_point_is_return(event->point))
		fprintf(log, " ret=0x%" PRIx64 " at=0x%" PRIx64 " to=0x%" PRIx64, sample->ret,
			sample->probe_address, sample->return_address);
	if (event->schema && event->point != PROBE_RETURN) {
		for (int i = 0; i < event->schema->nr_args; i++)
			fprintf(log, " %s=0x%" PRIx64, event->schema->arg_names[i],
				sample->args[i]);
		if (event->point != PROBE_CALL)
			fprintf(log, " at=0x%" PRIx64, sample->probe_address);
	}
	if (event->schema && (event->point == PROBE_ENTRY || event->point == PROBE_CALL))
		fprintf(log, " from=0x%" PRIx64, sample->caller);
	if (event->schema && (event->point == PROBE_STORE || sample->block))
		fprintf(log, " block=0x%" PRIx64, sample->block);
	if (event->is_newtask)
		fprintf(log, " new=%d flags=0x%" PRIx64, sample->newtask_pid,
			sample->newtask_clone_flags);
	for (size_t i = 0; i < sample->nr_callchain; i++)
		fprintf(log, "%s0x%" PRIx64, i ? "," : " chain=", sample->callchain[i]);
	if (sample->has_dump) {
		uint64_t sum = 0;

		for (uint64_t i = 0; i < sample->dump.nr_bytes; i++)
			sum += sample->dump.bytes[i];
		fprintf(log, " dump=%" PRIu64 " sum=%" PRIu64, sample->dump.nr_bytes, sum);
		for (int i = 0; i < __builtin_popcountll(sample->dump.regs_mask); i++)
			fprintf(log, "%s0x%" PRIx64, i ? "," : " regs=", sample->dump.regs[i]);
	}
	fputc('\n', log);
	return 0;
}

static inline int log_mmap(void *context, const struct perf_mmap_record *record)
{
	print_origin(context, "mmap", &record->origin);
	fprintf(context, " pid=%d 0x%" PRIx64 "+0x%" PRIx64 "@0x%" PRIx64 " %s%s",
		record->mapping.pid, record->mapping.start, record->mapping.len,
		record->mapping.file_offset, record->mapping.path, record->executable ? " x" : "");
	if (record->mapping.build_id_size)
		fprintf(context, " id=%u*%02x", record->mapping.build_id_size,
			record->mapping.build_id[record->mapping.build_id_size - 1]);
	fputc('\n', context);
	return 0;
}

static inline int log_task(FILE *log, const char *what, const struct perf_task_record *record)
{
	print_origin(log, what, &record->origin);
	fprintf(log, " %d/%d by %d/%d\n", record->pid, record->tid, record->ppid, record->ptid);
	return 0;
}

static inline int log_fork(void *context, const struct perf_task_record *record)
{
	return log_task(context, "fork", record);
}

static inline int log_exit(void *context, const struct perf_task_record *record)
{
	return log_task(context, "exit", record);
}

static inline int log_comm(void *context, const struct perf_comm_record *record)
{
	print_origin(context, "comm", &record->origin);
	fprintf(context, " %s%s\n", record->comm, record->exec ? " exec" : "");
	return 0;
}

static inline int log_lost(void *context, const struct perf_lost_record *record)
{
	print_origin(context, "lost", &record->origin);
	fprintf(context, " %" PRIu64 "\n", record->lost);
	return 0;
}

static inline int log_build_id(void *context, const char *path, const uint8_t *build_id,
			       uint8_t size)
{
	fprintf(context, "build-id %s %u*%02x\n", path, size, size ? build_id[size - 1] : 0);
	return 0;
}

/* Prefetching always seems to pay. */
static inline bool prefetch_nothing(const void *context, uint64_t address, bool sooner)
{
	return true;
}

/* Reads @fd, with messages going to a memory file. */
static inline struct reading read_fd(int fd)
{
	struct reading reading = {0};
	_cleanup_close_ int messages = memfd_create("messages", MFD_CLOEXEC);
	_cleanup_close_ int saved = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	size_t size;
	FILE *log = open_memstream(&reading.log, &size);
	const struct block_prefetch prefetch = {.fetch = prefetch_nothing};
	const struct perf_consumer consumer = {
		.context = log,
		.block_prefetch = &prefetch,
		.on_sample = log_sample,
		.on_mmap = log_mmap,
		.on_fork = log_fork,
		.on_exit = log_exit,
		.on_comm = log_comm,
		.on_lost = log_lost,
		.on_build_id = log_build_id,
	};
	off_t len;

	if (messages < 0 || saved < 0 || !log || dup2(messages, STDERR_FILENO) < 0)
		abort();
	reading.ret = perf_input_read(fd, "input", &consumer, &reading.stats);
	dup2(saved, STDERR_FILENO);
	fclose(log);
	len = lseek(messages, 0, SEEK_END);
	reading.messages = calloc(1, (size_t)len + 1);
	if (!reading.messages || pread(messages, reading.messages, (size_t)len, 0) != len)
		abort();
	return reading;
}

static inline void reading_deinit(struct reading *reading)
{
	free(reading->log);
	free(reading->messages);
}

#define _cleanup_reading_ __attribute__((cleanup(reading_deinit)))

/* A file is mapped or, if others can write to it, copied. That must make no difference. */
static inline struct reading read_bytes(const uint8_t *bytes, size_t nr)
{
	_cleanup_close_ int fd = memfd_create("recording", MFD_CLOEXEC);
	_cleanup_reading_ struct reading copied = {0};
	struct reading mapped;

	if (fd < 0 || (nr && write(fd, bytes, nr) != (ssize_t)nr) || fchmod(fd, 0666))
		abort();
	copied = read_fd(fd); /* its offset is at the end: a file is read from its beginning */
	if (fchmod(fd, 0600))
		abort();
	mapped = read_fd(fd);
	if (copied.ret != mapped.ret || strcmp(copied.log, mapped.log) != 0 ||
	    strcmp(copied.messages, mapped.messages) != 0)
		abort();
	return mapped;
}

static inline struct reading read_form(const struct perf_data_writer *writer,
				       enum perf_data_form form)
{
	size_t nr;
	_cleanup_free_ uint8_t *bytes = perf_data_image(writer, form, &nr);

	return read_bytes(bytes, nr);
}

/* The same through a pipe, which another process writes. */
static inline struct reading read_piped(const struct perf_data_writer *writer,
					enum perf_data_form form)
{
	struct reading reading;
	int fds[2];
	pid_t child;

	if (pipe2(fds, O_CLOEXEC))
		abort();
	child = fork();
	if (child == 0)
		_exit(perf_data_write(writer, form, fds[1]) ? 1 : 0);
	close(fds[1]);
	reading = read_fd(fds[0]);
	close(fds[0]);
	waitpid(child, NULL, 0);
	return reading;
}

#endif
