/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Takes any bytes as a kernel record, with any attribute and any fields: the input is struct input,
 * then the record.
 */
#include "parser/records/perf_formats.h"
#include "parser/records/perf_sample.h"
#include "parser/records/perf_side_records.h"
#include "test/fuzz/consumer.h"

#define NR_FIELDS 8

struct input {
	uint64_t sample_type, read_format, branch_sample_type, regs_user, attr_flags;
	uint8_t schema, point, is_newtask, unused;
	struct {
		uint16_t offset;
		uint8_t size, is_signed;
	} fields[NR_FIELDS];
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct perf_field field_of(const struct input *input, int i)
{
	static const uint8_t sizes[] = {0, 1, 2, 4, 8};

	return (struct perf_field){
		.offset = input->fields[i].offset,
		.size_bytes = sizes[input->fields[i].size % sizeof(sizes)],
		.is_signed = input->fields[i].is_signed & 1,
	};
}

static void set_fields(const struct input *input, struct perf_event *event)
{
	struct perf_event_fields *fields = &event->fields;
	const struct probe_schema *table;
	size_t nr_rows;

	table = probe_schema_table(&nr_rows);
	event->desc.is_newtask = input->is_newtask & 1;
	if (input->schema < nr_rows) {
		event->desc.schema = &table[input->schema];
		event->desc.point = (enum probe_point)(input->point % 4);
	}
	for (int i = 0; i < PROBE_MAX_ARGS; i++)
		fields->args[i] = field_of(input, i);
	fields->ret = field_of(input, 3);
	fields->block = field_of(input, 4);
	fields->caller = field_of(input, 5);
	fields->probe_address = fields->newtask_pid = field_of(input, 6);
	fields->return_address = fields->newtask_clone_flags = field_of(input, 7);
	perf_event_plan_fields(event);
}

static void decode(const struct perf_event *event, struct perf_record *record)
{
	struct perf_mmap_record mmap = {0};
	struct perf_task_record task = {0};
	struct perf_comm_record comm = {0};
	struct perf_sample sample;
	struct perf_origin origin;
	size_t body = record->header.size;

	fuzz_sum += perf_event_record_time(event, record);
	if (record->header.type == PERF_RECORD_SAMPLE) {
		if (perf_sample_decode(event, record, &sample) == 0)
			fuzz_touch_sample(&sample);
		return;
	}
	perf_event_read_trailer(event, record, &origin);
	body -= body < event->trailer_bytes ? body : event->trailer_bytes;
	if (perf_decode_task(record, body, &task) == 0)
		fuzz_touch(&task, sizeof(task));
	if (perf_decode_comm(record, body, &comm) == 0)
		fuzz_touch(comm.comm, strlen(comm.comm));
	if ((record->header.type == PERF_RECORD_MMAP || record->header.type == PERF_RECORD_MMAP2) &&
	    perf_decode_mmap(record, body, &mmap) == 0)
		fuzz_touch(mmap.mapping.path, strlen(mmap.mapping.path));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_TRACEPOINT, .size = sizeof(attr)};
	struct perf_events events = {0};
	struct perf_record record = {0};
	struct input input;
	uint64_t *aligned;

	if (size < sizeof(input) + sizeof(record.header) || size > UINT16_MAX)
		return -1;
	memcpy(&input, data, sizeof(input));
	data += sizeof(input);
	size -= sizeof(input);
	attr.sample_type = input.sample_type;
	attr.read_format = input.read_format;
	attr.branch_sample_type = input.branch_sample_type;
	attr.sample_regs_user = input.regs_user;
	attr.sample_id_all = input.attr_flags & 1;
	if (perf_events_add(&events, (const uint8_t *)&attr, sizeof(attr), NULL, 0))
		abort();
	set_fields(&input, events.events[0]);
	/* As in the reader: aligned, and exactly as long as its header says. */
	aligned = malloc(size);
	if (!aligned)
		abort();
	memcpy(aligned, data, size);
	record.bytes = (uint8_t *)aligned;
	memcpy(&record.header, aligned, sizeof(record.header));
	record.header.size = (uint16_t)size;
	memcpy(aligned, &record.header, sizeof(record.header));
	decode(events.events[0], &record);
	free(aligned);
	perf_events_deinit(&events);
	return 0;
}
