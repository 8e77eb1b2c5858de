/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/schema/probe_events.h"
#include "test/support/perf_data_buffer.h"

#include "common/scope.h"

#include <errno.h>

struct perf_data_writer *perf_data_writer_create(const struct perf_data_options *options)
{
	struct perf_data_writer *writer = calloc(1, sizeof(*writer));

	if (!writer)
		abort();
	if (options)
		writer->options = *options;
	if (writer->options.sample_type == 0)
		writer->options.sample_type = PERF_DATA_DEFAULT_SAMPLE_TYPE | PERF_SAMPLE_CALLCHAIN;
	if (writer->options.first_id == 0)
		writer->options.first_id = FIRST_SAMPLE_ID;
	return writer;
}

void perf_data_writer_destroy(struct perf_data_writer *writer)
{
	if (!writer)
		return;
	for (int i = 0; i < writer->nr_events; i++) {
		free(writer->events[i].system);
		free(writer->events[i].name);
		free(writer->events[i].format);
	}
	free(writer->records.bytes);
	free(writer->build_ids.bytes);
	free(writer);
}

/* Parses "u64 bytes\n..." and prints the format's field lines. */
static void add_fields(struct event *event, FILE *format, const char *fields)
{
	uint32_t offset = RAW_COMMON;

	while (*fields) {
		const char *end = strchrnul(fields, '\n');
		uint32_t bits = (uint32_t)strtoul(fields + 1, NULL, 10);
		const char *name = strchr(fields, ' ');
		struct field *field = &event->fields[event->nr_fields++];

		if (event->nr_fields > MAX_FIELDS || !name || name > end || bits == 0)
			abort();
		field->size_bytes = bits / 8;
		offset = (offset + field->size_bytes - 1) / field->size_bytes * field->size_bytes;
		field->offset = offset;
		fprintf(format, "\tfield:%.*s;\toffset:%u;\tsize:%u;\tsigned:%d;\n",
			(int)(end - fields), fields, offset, field->size_bytes, *fields == 's');
		offset += field->size_bytes;
		fields = *end ? end + 1 : end;
	}
	/* With its size word, raw data is padded to 8 bytes. */
	event->raw_bytes = (offset + 4 + 7) / 8 * 8 - 4;
}

static int add_event(struct perf_data_writer *writer)
{
	if (writer->nr_events == MAX_EVENTS)
		abort();
	return writer->nr_events++;
}

int perf_data_add_event(struct perf_data_writer *writer, const char *system, const char *name,
			const char *fields)
{
	int number = add_event(writer);
	struct event *event = &writer->events[number];
	size_t size;
	FILE *format = open_memstream(&event->format, &size);

	event->system = strdup(system);
	event->name = strdup(name);
	if (!format || !event->system || !event->name)
		abort();
	fprintf(format,
		"name: %s\nID: %d\nformat:\n"
		"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
		"\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
		"\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
		"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n",
		name, FIRST_CONFIG + number);
	add_fields(event, format, fields);
	fprintf(format, "\nprint fmt: \"(%%lx)\", REC->common_pid\n");
	if (fclose(format) != 0)
		abort();
	return number;
}

int perf_data_add_probe(struct perf_data_writer *writer, const char *function,
			enum probe_point point)
{
	const struct probe_schema *schema = probe_schema_find(function);
	_cleanup_free_ char *fields = NULL;
	char name[64];
	size_t size;
	FILE *out = open_memstream(&fields, &size);

	if (!out || !schema || probe_schema_event_name(schema->function, point, name, sizeof(name)))
		abort();
	if (point == PROBE_RETURN) {
		fputs("u64 __probe_func\nu64 __probe_ret_ip\nu64 " PROBE_FIELD_RET, out);
	} else if (point == PROBE_STORE) {
		fprintf(out, "u64 __probe_ip\nu64 %s\nu64 " PROBE_FIELD_BLOCK,
			schema->arg_names[schema->block_arg]);
	} else if (point == PROBE_CALL) {
		fputs("u64 __probe_func\nu64 __probe_ret_ip\n", out);
		for (int i = 0; i < schema->nr_args; i++)
			fprintf(out, "u64 %s\n", schema->arg_names[i]);
		fputs("u64 " PROBE_FIELD_RET, out);
	} else {
		fputs("u64 __probe_ip\n", out);
		for (int i = 0; i < schema->nr_args; i++)
			fprintf(out, "u64 %s\n", schema->arg_names[i]);
		fputs("u64 " PROBE_FIELD_CALLER, out);
	}
	if (fclose(out) != 0)
		abort();
	return perf_data_add_event(writer, "leakprobe_test", name, fields);
}

int perf_data_add_newtask(struct perf_data_writer *writer)
{
	return perf_data_add_event(writer, "task", "task_newtask", "s32 pid\nu64 clone_flags");
}

int perf_data_add_dummy(struct perf_data_writer *writer)
{
	return add_event(writer);
}

static void put_build_id(struct buffer *buffer, uint32_t type, const char *path, uint8_t byte)
{
	size_t start = begin_record(buffer, type, PERF_RECORD_MISC_USER | 1 << 15);

	put_u32(buffer, UINT32_MAX); /* pid */
	for (int i = 0; i < 20; i++)
		put_u8(buffer, byte);
	put_u32(buffer, 20); /* its size, and three reserved bytes */
	put_string(buffer, path);
	pad(buffer, 8, start);
	end_record(buffer, start);
}

void perf_data_build_id(struct perf_data_writer *writer, const char *path, uint8_t byte)
{
	put_build_id(&writer->build_ids, 67, path, byte);
}

static void put_tracing_data(const struct perf_data_writer *writer, struct buffer *buffer)
{
	static const uint8_t magic[] = {23, 8, 68, 't', 'r', 'a', 'c', 'i', 'n', 'g'};
	uint32_t nr = 0;

	put(buffer, magic, sizeof(magic));
	put_string(buffer, "0.6");
	put_u8(buffer, 0); /* little endian */
	put_u8(buffer, 8);
	put_u32(buffer, 4096);
	put_string(buffer, "header_page");
	put_u64(buffer, 0);
	put_string(buffer, "header_event");
	put_u64(buffer, 0);
	put_u32(buffer, 0); /* ftrace's formats */
	for (int i = 0; i < writer->nr_events; i++)
		nr += writer->events[i].format != NULL;
	put_u32(buffer, nr); /* each event is a system of its own */
	for (int i = 0; i < writer->nr_events; i++) {
		const struct event *event = &writer->events[i];

		if (!event->format)
			continue;
		put_string(buffer, event->system);
		put_u32(buffer, 1);
		put_u64(buffer, strlen(event->format));
		put(buffer, event->format, strlen(event->format));
	}
	put_u32(buffer, 0); /* kallsyms */
	put_u32(buffer, 0); /* printk formats */
	put_u64(buffer, 0); /* saved command names */
}

/* The record, followed by the tracing data. */
static void put_tracing_data_record(const struct perf_data_writer *writer, struct buffer *buffer)
{
	struct buffer data = {0};
	size_t start = begin_record(buffer, 66, 0);

	put_tracing_data(writer, &data);
	pad(&data, 8, 0);
	put_u32(buffer, (uint32_t)data.nr);
	put_u32(buffer, 0);
	end_record(buffer, start);
	put(buffer, data.bytes, data.nr);
	free(data.bytes);
}

void perf_data_tracing_data_record(struct perf_data_writer *writer)
{
	put_tracing_data_record(writer, &writer->records);
	writer->formats_in_stream = true;
}

static uint32_t attr_bytes(const struct perf_data_writer *writer)
{
	return writer->options.attr_bytes ? writer->options.attr_bytes
					  : (uint32_t)sizeof(struct perf_event_attr);
}

static void put_attr(const struct perf_data_writer *writer, int number, struct buffer *buffer)
{
	const struct perf_data_options *options = &writer->options;
	bool is_tracepoint = writer->events[number].format;
	struct perf_event_attr attr = {
		.type = is_tracepoint ? PERF_TYPE_TRACEPOINT : PERF_TYPE_SOFTWARE,
		.config = is_tracepoint ? (uint64_t)(FIRST_CONFIG + number) : PERF_COUNT_SW_DUMMY,
		.size = attr_bytes(writer),
		.sample_type = options->sample_type,
		.read_format = options->read_format,
		.sample_regs_user = options->regs_mask,
		.sample_id_all = !options->no_sample_id_all,
		.sample_period = 1,
		.inherit = !options->no_inherit,
		.mmap = 1,
		.comm = 1,
		.task = 1,
	};

	put(buffer, &attr, attr.size < sizeof(attr) ? attr.size : sizeof(attr));
	for (size_t i = sizeof(attr); i < attr.size; i++)
		put_u8(buffer, 0xff);
}

/* Writes the sections of a file, and notes their positions for the table. */
struct sections {
	uint64_t features;
	uint64_t table[2 * 2]; /* TRACING_DATA and BUILD_ID: offset, size */
	size_t nr_words;
};

static void put_sections(const struct perf_data_writer *writer, struct buffer *image,
			 struct sections *ret)
{
	*ret = (struct sections){0};
	if (!writer->formats_in_stream) {
		ret->features |= 1 << 1;
		ret->table[ret->nr_words++] = image->nr;
		put_tracing_data(writer, image);
		ret->table[ret->nr_words] = image->nr - ret->table[ret->nr_words - 1];
		ret->nr_words++;
	}
	if (writer->build_ids.nr) {
		ret->features |= 1 << 2;
		ret->table[ret->nr_words++] = image->nr;
		ret->table[ret->nr_words++] = writer->build_ids.nr;
		put(image, writer->build_ids.bytes, writer->build_ids.nr);
	}
}

static void put_attrs_and_ids(const struct perf_data_writer *writer, struct buffer *image,
			      uint64_t header[9])
{
	uint64_t ids_offset = image->nr;

	for (int i = 0; i < writer->nr_events; i++)
		put_u64(image, writer->options.first_id + (uint64_t)i);
	header[2] = attr_bytes(writer) + 16;
	header[3] = image->nr;
	header[4] = header[2] * (uint64_t)writer->nr_events;
	for (int i = 0; i < writer->nr_events; i++) {
		put_attr(writer, i, image);
		put_u64(image, ids_offset + 8 * (uint64_t)i);
		put_u64(image, 8);
	}
}

static void file_image(const struct perf_data_writer *writer, enum perf_data_form form,
		       struct buffer *image)
{
	/* magic, size, attr_size, attrs, data, event_types, features */
	uint64_t header[13] = {0x32454c4946524550, 104};
	struct sections sections = {0};
	size_t table_at;

	put(image, header, sizeof(header));
	put_attrs_and_ids(writer, image, header);
	if (form == PERF_DATA_FILE_PROVISIONAL) {
		put_sections(writer, image, &sections);
		header[5] = image->nr;
		put(image, sections.table, 8 * sections.nr_words);
	} else {
		header[5] = image->nr;
	}
	put(image, writer->records.bytes, writer->records.nr);
	if (form == PERF_DATA_FILE) {
		header[6] = writer->records.nr;
		/* First reserves the table; then writes it with put_sections()'s result. */
		table_at = image->nr;
		if (!writer->formats_in_stream)
			put(image, (uint64_t[2]){0}, 2 * sizeof(uint64_t));
		if (writer->build_ids.nr)
			put(image, (uint64_t[2]){0}, 2 * sizeof(uint64_t));
		put_sections(writer, image, &sections);
		memcpy(image->bytes + table_at, sections.table, 8 * sections.nr_words);
	}
	/* perf sets the bits at the start, even if the sections are never written. */
	header[9] = form == PERF_DATA_FILE_UNFINISHED ? 6 : sections.features;
	memcpy(image->bytes, header, sizeof(header));
}

static void pipe_image(const struct perf_data_writer *writer, struct buffer *image)
{
	put_u64(image, 0x32454c4946524550);
	put_u64(image, 16);
	for (int i = 0; i < writer->nr_events; i++) {
		size_t start = begin_record(image, 64, 0);

		put_attr(writer, i, image);
		put_u64(image, writer->options.first_id + (uint64_t)i);
		end_record(image, start);
	}
	if (!writer->formats_in_stream)
		put_tracing_data_record(writer, image);
	put(image, writer->build_ids.bytes, writer->build_ids.nr);
	put(image, writer->records.bytes, writer->records.nr);
}

uint8_t *perf_data_image(const struct perf_data_writer *writer, enum perf_data_form form,
			 size_t *ret_bytes)
{
	struct buffer image = {0};

	if (form == PERF_DATA_PIPE)
		pipe_image(writer, &image);
	else
		file_image(writer, form, &image);
	*ret_bytes = image.nr;
	return image.bytes;
}

int perf_data_write(const struct perf_data_writer *writer, enum perf_data_form form, int fd)
{
	size_t nr, done = 0;
	_cleanup_free_ uint8_t *bytes = perf_data_image(writer, form, &nr);

	while (done < nr) {
		ssize_t written = write(fd, bytes + done, nr - done);

		if (written < 0 && errno != EINTR)
			return -errno;
		done += written > 0 ? (size_t)written : 0;
	}
	return 0;
}
