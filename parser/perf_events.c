/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/perf_events.h"

#include "common/scope.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM	     1
#define uthash_nonfatal_oom(element) ((element)->event = NULL)
#include <uthash.h>

struct perf_event_id {
	uint64_t id;
	struct perf_event *event; /* NULL: not in the hash */
	UT_hash_handle hh;
};

#define ID_FIELDS_MASK                                                                             \
	(PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID |             \
	 PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER)

static uint64_t load_u64(const uint8_t *bytes)
{
	uint64_t value;

	memcpy(&value, bytes, sizeof(value));
	return value;
}

void perf_events_deinit(struct perf_events *events)
{
	HASH_CLEAR(hh, events->by_id);
	for (size_t i = 0; i < events->nr; i++) {
		free(events->id_arrays[i]);
		free(events->events[i]);
	}
	free(events->id_arrays);
	free(events->events);
	*events = (struct perf_events){0};
}

static int add_ids(struct perf_events *events, struct perf_event *event, const uint8_t *bytes,
		   size_t nr, struct perf_event_id **ret)
{
	struct perf_event_id *ids = calloc(nr ? nr : 1, sizeof(*ids));

	*ret = ids; /* released with the events, even when this fails */
	if (!ids)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++) {
		struct perf_event_id *id = &ids[i], *other;

		id->id = load_u64(bytes + i * sizeof(uint64_t));
		id->event = event;
		HASH_FIND(hh, events->by_id, &id->id, sizeof(id->id), other);
		if (other)
			continue;
		HASH_ADD(hh, events->by_id, id, sizeof(id->id), id);
		if (!id->event)
			return -ENOMEM;
	}
	return 0;
}

static int grow(struct perf_events *events)
{
	struct perf_event **list =
		reallocarray(events->events, events->nr + 1, sizeof(struct perf_event *));
	struct perf_event_id **arrays;

	if (!list)
		return -ENOMEM;
	events->events = list;
	arrays = reallocarray(events->id_arrays, events->nr + 1, sizeof(struct perf_event_id *));
	if (!arrays)
		return -ENOMEM;
	events->id_arrays = arrays;
	return 0;
}

int perf_events_add(struct perf_events *events, const uint8_t *attr, size_t attr_bytes,
		    const uint8_t *ids, size_t nr_ids)
{
	_cleanup_free_ struct perf_event *event = calloc(1, sizeof(*event));
	struct perf_event *added;
	uint32_t claimed_bytes;

	if (!event || grow(events))
		return -ENOMEM;
	if (attr_bytes < PERF_ATTR_SIZE_VER0)
		return -EINVAL;
	memcpy(&claimed_bytes, attr + offsetof(struct perf_event_attr, size),
	       sizeof(claimed_bytes));
	if (claimed_bytes == 0)
		claimed_bytes = PERF_ATTR_SIZE_VER0;
	if (attr_bytes > claimed_bytes)
		attr_bytes = claimed_bytes;
	if (attr_bytes > sizeof(event->desc.attr))
		attr_bytes = sizeof(event->desc.attr);
	if (attr_bytes < PERF_ATTR_SIZE_VER0)
		return -EINVAL;
	memcpy(&event->desc.attr, attr, attr_bytes);
	if (event->desc.attr.sample_id_all)
		event->trailer_bytes =
			sizeof(uint64_t) *
			(size_t)__builtin_popcountll(event->desc.attr.sample_type & ID_FIELDS_MASK);
	added = events->events[events->nr] = steal_ptr(event);
	events->id_arrays[events->nr] = NULL;
	events->nr++;
	return add_ids(events, added, ids, nr_ids, &events->id_arrays[events->nr - 1]);
}

/* The bytes from a sample's start to the field @bit, all of whose predecessors take 8 bytes. */
static size_t sample_field_offset(uint64_t sample_type, uint64_t bit)
{
	static const uint64_t order[] = {
		PERF_SAMPLE_IDENTIFIER, PERF_SAMPLE_IP,	  PERF_SAMPLE_TID,
		PERF_SAMPLE_TIME,	PERF_SAMPLE_ADDR, PERF_SAMPLE_ID,
	};
	size_t offset = sizeof(struct perf_event_header);

	for (size_t i = 0; i < ARRAY_SIZE(order) && order[i] != bit; i++)
		if (sample_type & order[i])
			offset += sizeof(uint64_t);
	return offset;
}

/* The bytes from the field @bit to the end of a trailer. */
static size_t trailer_field_distance(uint64_t sample_type, uint64_t bit)
{
	static const uint64_t order[] = {
		PERF_SAMPLE_IDENTIFIER, PERF_SAMPLE_CPU,  PERF_SAMPLE_STREAM_ID,
		PERF_SAMPLE_ID,		PERF_SAMPLE_TIME, PERF_SAMPLE_TID,
	};
	size_t distance = 0;

	for (size_t i = 0; i < ARRAY_SIZE(order); i++) {
		if (sample_type & order[i])
			distance += sizeof(uint64_t);
		if (order[i] == bit)
			break;
	}
	return distance;
}

/* Reads the 8 bytes of field @bit from a sample or a trailer. */
static bool read_id_field(const struct perf_event *event, const struct perf_record *record,
			  uint64_t bit, uint64_t *ret)
{
	uint64_t sample_type = event->desc.attr.sample_type;
	size_t offset;

	if (!(sample_type & bit))
		return false;
	if (record->header.type == PERF_RECORD_SAMPLE) {
		offset = sample_field_offset(sample_type, bit);
		if (offset + sizeof(*ret) > record->header.size)
			return false;
	} else {
		if (sizeof(record->header) + event->trailer_bytes > record->header.size ||
		    !event->trailer_bytes)
			return false;
		offset = record->header.size - trailer_field_distance(sample_type, bit);
	}
	*ret = load_u64(record->bytes + offset);
	return true;
}

struct perf_event *perf_events_find(const struct perf_events *events,
				    const struct perf_record *record)
{
	bool is_sample = record->header.type == PERF_RECORD_SAMPLE;
	struct perf_event *first;
	struct perf_event_id *found;
	uint64_t bit, id;

	if (events->nr == 0)
		return NULL;
	/* As perf: all attributes agree on where the id stands, so the first one's says it. */
	first = events->events[0];
	if (events->nr == 1 || (!is_sample && !first->desc.attr.sample_id_all))
		return first;
	bit = first->desc.attr.sample_type & PERF_SAMPLE_IDENTIFIER ? PERF_SAMPLE_IDENTIFIER
								    : PERF_SAMPLE_ID;
	if (!read_id_field(first, record, bit, &id))
		return is_sample ? NULL : first;
	HASH_FIND(hh, events->by_id, &id, sizeof(id), found);
	if (found)
		return found->event;
	/* Records that the recorder made up have the id 0. */
	return is_sample && id != 0 ? NULL : first;
}

uint64_t perf_event_record_time(const struct perf_event *event, const struct perf_record *record)
{
	uint64_t time_ns;

	return read_id_field(event, record, PERF_SAMPLE_TIME, &time_ns) ? time_ns : 0;
}

void perf_event_read_trailer(const struct perf_event *event, const struct perf_record *record,
			     struct perf_origin *ret)
{
	uint64_t value;

	*ret = (struct perf_origin){.pid = -1, .tid = -1};
	ret->time_ns = perf_event_record_time(event, record);
	if (read_id_field(event, record, PERF_SAMPLE_TID, &value)) {
		ret->pid = (pid_t)(uint32_t)value;
		ret->tid = (pid_t)(value >> 32);
	}
	if (read_id_field(event, record, PERF_SAMPLE_CPU, &value))
		ret->cpu = (uint32_t)value;
}
