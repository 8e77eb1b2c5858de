/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the files of perf_data_writer: the writer's structure, and a growing buffer. */
#ifndef LEAKTOOLS_TEST_SUPPORT_PERF_DATA_BUFFER_H
#define LEAKTOOLS_TEST_SUPPORT_PERF_DATA_BUFFER_H

#include "test/support/perf_data_writer.h"

#include <stdlib.h>
#include <string.h>

struct buffer {
	uint8_t *bytes;
	size_t nr, capacity;
};

#define MAX_EVENTS	32
#define MAX_FIELDS	16
#define FIRST_CONFIG	1000 /* the tracepoint's id in tracefs */
#define FIRST_SAMPLE_ID 5000
#define RAW_COMMON	8 /* common_type, _flags, _preempt_count, _pid */

struct field {
	uint32_t offset, size_bytes;
};

struct event {
	char *system, *name; /* NULL: no tracepoint */
	char *format;
	struct field fields[MAX_FIELDS];
	size_t nr_fields;
	uint32_t raw_bytes;
};

struct perf_data_writer {
	struct perf_data_options options;
	struct event events[MAX_EVENTS];
	int nr_events;
	struct buffer records;
	struct buffer build_ids;
	bool formats_in_stream;
};

static inline void put(struct buffer *buffer, const void *bytes, size_t nr)
{
	if (buffer->nr + nr > buffer->capacity) {
		buffer->capacity = 2 * (buffer->nr + nr);
		buffer->bytes = realloc(buffer->bytes, buffer->capacity);
		if (!buffer->bytes)
			abort();
	}
	if (nr)
		memcpy(buffer->bytes + buffer->nr, bytes, nr);
	buffer->nr += nr;
}

static inline void put_u8(struct buffer *buffer, uint8_t value)
{
	put(buffer, &value, sizeof(value));
}

static inline void put_u32(struct buffer *buffer, uint32_t value)
{
	put(buffer, &value, sizeof(value));
}

static inline void put_u64(struct buffer *buffer, uint64_t value)
{
	put(buffer, &value, sizeof(value));
}

static inline void put_string(struct buffer *buffer, const char *string)
{
	put(buffer, string, strlen(string) + 1);
}

static inline void pad(struct buffer *buffer, size_t alignment, size_t from)
{
	while ((buffer->nr - from) % alignment != 0)
		put_u8(buffer, 0);
}

/* Begins a record; end_record() fills in its size. */
static inline size_t begin_record(struct buffer *buffer, uint32_t type, uint16_t misc)
{
	struct perf_event_header header = {.type = type, .misc = misc};
	size_t start = buffer->nr;

	put(buffer, &header, sizeof(header));
	return start;
}

static inline void end_record(struct buffer *buffer, size_t start)
{
	struct perf_event_header header;

	memcpy(&header, buffer->bytes + start, sizeof(header));
	header.size = (uint16_t)(buffer->nr - start);
	memcpy(buffer->bytes + start, &header, sizeof(header));
}

static inline void put_pair(struct buffer *buffer, uint32_t first, uint32_t second)
{
	put_u32(buffer, first);
	put_u32(buffer, second);
}

#endif
