/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The records of perf_data_writer. */
#include "test/support/perf_data_buffer.h"

#include <sys/mman.h>

static void put_raw(struct perf_data_writer *writer, const struct perf_data_sample *sample)
{
	const struct event *event = &writer->events[sample->event];
	struct buffer *records = &writer->records;
	size_t start;

	put_u32(records, event->raw_bytes);
	start = records->nr;
	put_u32(records, (uint32_t)(FIRST_CONFIG + sample->event)); /* common_type, flags, count */
	put_u32(records, (uint32_t)sample->tid);
	while (records->nr - start < event->raw_bytes)
		put_u8(records, 0);
	for (size_t i = 0; i < event->nr_fields; i++) /* little endian, like this machine */
		memcpy(records->bytes + start + event->fields[i].offset, &sample->fields[i],
		       event->fields[i].size_bytes);
}

static void put_callchain(struct buffer *records, const struct perf_data_sample *sample)
{
	put_u64(records, sample->nr_callchain + 3);
	put_u64(records, (uint64_t)PERF_CONTEXT_KERNEL);
	put_u64(records, 0xffffffff81000000);
	put_u64(records, (uint64_t)PERF_CONTEXT_USER);
	put(records, sample->callchain, sample->nr_callchain * sizeof(uint64_t));
}

static void put_read(struct buffer *records, uint64_t read_format)
{
	size_t nr = read_format & PERF_FORMAT_GROUP ? 2 : 1;

	if (read_format & PERF_FORMAT_GROUP)
		put_u64(records, nr);
	else
		put_u64(records, 1);
	if (read_format & PERF_FORMAT_TOTAL_TIME_ENABLED)
		put_u64(records, 2);
	if (read_format & PERF_FORMAT_TOTAL_TIME_RUNNING)
		put_u64(records, 3);
	for (size_t i = 0; i < nr; i++) {
		if (read_format & PERF_FORMAT_GROUP)
			put_u64(records, 4);
		if (read_format & PERF_FORMAT_ID)
			put_u64(records, 5);
	}
}

static void put_dump(struct perf_data_writer *writer, const struct perf_data_sample *sample)
{
	struct buffer *records = &writer->records;
	const struct perf_data_options *options = &writer->options;

	if (options->sample_type & PERF_SAMPLE_REGS_USER) {
		put_u64(records,
			sample->regs ? PERF_SAMPLE_REGS_ABI_64 : PERF_SAMPLE_REGS_ABI_NONE);
		if (sample->regs)
			put(records, sample->regs,
			    (size_t)__builtin_popcountll(options->regs_mask) * sizeof(uint64_t));
	}
	if (options->sample_type & PERF_SAMPLE_STACK_USER) {
		put_u64(records, sample->stack_bytes);
		put(records, sample->stack, sample->stack_bytes);
		if (sample->stack_bytes)
			put_u64(records, sample->stack_bytes);
	}
}

void perf_data_sample(struct perf_data_writer *writer, const struct perf_data_sample *sample)
{
	uint64_t type = writer->options.sample_type;
	uint64_t id = writer->options.first_id + (uint64_t)sample->event;
	struct buffer *records = &writer->records;
	size_t start = begin_record(records, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);

	if (type & PERF_SAMPLE_IDENTIFIER)
		put_u64(records, id);
	if (type & PERF_SAMPLE_IP)
		put_u64(records, sample->ip);
	if (type & PERF_SAMPLE_TID)
		put_pair(records, (uint32_t)sample->pid, (uint32_t)sample->tid);
	if (type & PERF_SAMPLE_TIME)
		put_u64(records, sample->time_ns);
	if (type & PERF_SAMPLE_ADDR)
		put_u64(records, 0xadd);
	if (type & PERF_SAMPLE_ID)
		put_u64(records, id);
	if (type & PERF_SAMPLE_STREAM_ID)
		put_u64(records, 0x57);
	if (type & PERF_SAMPLE_CPU)
		put_pair(records, sample->cpu, 0);
	if (type & PERF_SAMPLE_PERIOD)
		put_u64(records, 1);
	if (type & PERF_SAMPLE_READ)
		put_read(records, writer->options.read_format);
	if (type & PERF_SAMPLE_CALLCHAIN)
		put_callchain(records, sample);
	if (type & PERF_SAMPLE_RAW)
		put_raw(writer, sample);
	if (type & PERF_SAMPLE_BRANCH_STACK) {
		put_u64(records, 1);
		for (int i = 0; i < 3; i++)
			put_u64(records, 0xb);
	}
	put_dump(writer, sample);
	if (type & PERF_SAMPLE_WEIGHT)
		put_u64(records, 1);
	end_record(records, start);
}

/* The trailer of an event. */
static void end_record_of(struct perf_data_writer *writer, size_t start,
			  const struct perf_data_sample *origin)
{
	uint64_t type = writer->options.sample_type;
	uint64_t id = writer->options.first_id + (uint64_t)origin->event;
	struct buffer *records = &writer->records;

	if (!writer->options.no_sample_id_all) {
		if (type & PERF_SAMPLE_TID)
			put_pair(records, (uint32_t)origin->pid, (uint32_t)origin->tid);
		if (type & PERF_SAMPLE_TIME)
			put_u64(records, origin->time_ns);
		if (type & PERF_SAMPLE_ID)
			put_u64(records, id);
		if (type & PERF_SAMPLE_STREAM_ID)
			put_u64(records, 0x57);
		if (type & PERF_SAMPLE_CPU)
			put_pair(records, origin->cpu, 0);
		if (type & PERF_SAMPLE_IDENTIFIER)
			put_u64(records, id);
	}
	end_record(records, start);
}

/* The trailer of the first event. */
static void end_side_record(struct perf_data_writer *writer, size_t start, pid_t pid, pid_t tid,
			    uint64_t time_ns)
{
	end_record_of(writer, start,
		      &(struct perf_data_sample){.pid = pid, .tid = tid, .time_ns = time_ns});
}

void perf_data_mmap(struct perf_data_writer *writer, pid_t pid, uint64_t time_ns, uint64_t start,
		    uint64_t len, uint64_t file_offset, const char *path)
{
	struct buffer *records = &writer->records;
	size_t begin = begin_record(records, PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER);

	put_pair(records, (uint32_t)pid, (uint32_t)pid);
	put_u64(records, start);
	put_u64(records, len);
	put_u64(records, file_offset);
	put_pair(records, 8, 1); /* device */
	put_u64(records, 4711);	 /* inode */
	put_u64(records, 0);	 /* generation */
	put_pair(records, PROT_READ | PROT_EXEC, MAP_PRIVATE);
	put_string(records, path);
	pad(records, 8, begin);
	end_side_record(writer, begin, pid, pid, time_ns);
}

void perf_data_mmap_build_id(struct perf_data_writer *writer, pid_t pid, uint64_t time_ns,
			     uint64_t start, uint64_t len, const char *path, uint8_t byte)
{
	struct buffer *records = &writer->records;
	size_t begin = begin_record(records, PERF_RECORD_MMAP2,
				    PERF_RECORD_MISC_USER | PERF_RECORD_MISC_MMAP_BUILD_ID);

	put_pair(records, (uint32_t)pid, (uint32_t)pid);
	put_u64(records, start);
	put_u64(records, len);
	put_u64(records, 0);
	put_u32(records, 20); /* the build-id's size, and three reserved bytes */
	for (int i = 0; i < 20; i++)
		put_u8(records, byte);
	put_pair(records, PROT_READ | PROT_EXEC, MAP_PRIVATE);
	put_string(records, path);
	pad(records, 8, begin);
	end_side_record(writer, begin, pid, pid, time_ns);
}

void perf_data_comm(struct perf_data_writer *writer, pid_t pid, pid_t tid, uint64_t time_ns,
		    const char *comm, bool exec)
{
	struct buffer *records = &writer->records;
	size_t start =
		begin_record(records, PERF_RECORD_COMM, exec ? PERF_RECORD_MISC_COMM_EXEC : 0);

	put_pair(records, (uint32_t)pid, (uint32_t)tid);
	put_string(records, comm);
	pad(records, 8, start);
	end_side_record(writer, start, pid, tid, time_ns);
}

static void put_task(struct perf_data_writer *writer, uint32_t type, const pid_t ids[4],
		     uint64_t time_ns)
{
	size_t start = begin_record(&writer->records, type, 0);

	put(&writer->records, ids, 4 * sizeof(*ids));
	put_u64(&writer->records, time_ns);
	end_side_record(writer, start, ids[0], ids[2], time_ns);
}

void perf_data_fork(struct perf_data_writer *writer, pid_t pid, pid_t tid, pid_t ppid, pid_t ptid,
		    uint64_t time_ns)
{
	put_task(writer, PERF_RECORD_FORK, (const pid_t[]){pid, ppid, tid, ptid}, time_ns);
}

void perf_data_exit(struct perf_data_writer *writer, pid_t pid, pid_t tid, uint64_t time_ns)
{
	put_task(writer, PERF_RECORD_EXIT, (const pid_t[]){pid, pid, tid, pid}, time_ns);
}

void perf_data_lost(struct perf_data_writer *writer, uint64_t time_ns, uint64_t lost)
{
	perf_data_lost_on(writer, 0, 0, time_ns, lost);
}

void perf_data_lost_on(struct perf_data_writer *writer, int event, uint32_t cpu, uint64_t time_ns,
		       uint64_t lost)
{
	size_t start = begin_record(&writer->records, PERF_RECORD_LOST, 0);

	put_u64(&writer->records, writer->options.first_id + (uint64_t)event);
	put_u64(&writer->records, lost);
	end_record_of(writer, start,
		      &(struct perf_data_sample){.event = event, .cpu = cpu, .time_ns = time_ns});
}

void perf_data_lost_samples(struct perf_data_writer *writer, uint64_t lost)
{
	size_t start = begin_record(&writer->records, PERF_RECORD_LOST_SAMPLES, 0);

	put_u64(&writer->records, lost);
	end_side_record(writer, start, 0, 0, 0);
}

void perf_data_raw_record(struct perf_data_writer *writer, uint32_t type, uint16_t misc,
			  const void *body, size_t body_bytes)
{
	size_t start = begin_record(&writer->records, type, misc);

	put(&writer->records, body, body_bytes);
	end_record(&writer->records, start);
}

void perf_data_raw_bytes(struct perf_data_writer *writer, const void *bytes, size_t nr_bytes)
{
	put(&writer->records, bytes, nr_bytes);
}

void perf_data_finished_round(struct perf_data_writer *writer)
{
	perf_data_raw_record(writer, 68, 0, NULL, 0);
}
