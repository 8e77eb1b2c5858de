/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/records/perf_events.h"

#include "common/scope.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MIN_SLOTS ((size_t)64)
/* leakrec gives such ids to events of its own: the same ones in each recording. */
#define FIRST_OWN_ID UINT64_C(0xffff0000)

static uint64_t load_u64(const uint8_t *bytes)
{
	uint64_t value;

	memcpy(&value, bytes, sizeof(value));
	return value;
}

void perf_events_deinit(struct perf_events *events)
{
	for (size_t i = 0; i < events->nr; i++)
		free(events->events[i]);
	free(events->by_id);
	free(events->events);
	*events = (struct perf_events){0};
}

static int reserve_ids(struct perf_events *events, size_t nr)
{
	struct perf_event_id *old = events->by_id;
	size_t nr_old = events->nr_slots, nr_slots = nr_old ? nr_old : MIN_SLOTS;
	struct perf_event_id *slots;

	while (nr_slots / 2 < events->nr_ids + nr)
		nr_slots *= 2;
	if (nr_slots == nr_old)
		return 0;
	slots = calloc(nr_slots, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	events->seed = hash_seed();
	events->by_id = slots;
	events->nr_slots = nr_slots;
	for (size_t i = 0; i < nr_old; i++)
		if (old[i].event)
			*perf_events_slot(events, old[i].id) = old[i];
	free(old);
	return 0;
}

static int add_ids(struct perf_events *events, struct perf_event *event, const uint8_t *bytes,
		   size_t nr)
{
	if (reserve_ids(events, nr))
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++) {
		uint64_t id = load_u64(bytes + i * sizeof(uint64_t));
		struct perf_event_id *slot = perf_events_slot(events, id);

		if (slot->event)
			continue;
		*slot = (struct perf_event_id){id, event};
		events->nr_ids++;
	}
	return 0;
}

#define PLAIN_SAMPLE_TYPE                                                                          \
	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |            \
	 PERF_SAMPLE_ADDR | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU |             \
	 PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW)

/* Samples begin with these fields, if they have them. */
static void plan_sample(struct perf_event *event)
{
	uint64_t sample_type = event->desc.attr.sample_type;
	uint16_t offset = sizeof(struct perf_event_header), identifier = 0, id = 0, unused;
	const struct {
		uint64_t bit;
		uint16_t *place;
	} order[] = {
		{PERF_SAMPLE_IDENTIFIER, &identifier}, {PERF_SAMPLE_IP, &event->sample_ip},
		{PERF_SAMPLE_TID, &event->sample.tid}, {PERF_SAMPLE_TIME, &event->sample.time},
		{PERF_SAMPLE_ADDR, &unused},	       {PERF_SAMPLE_ID, &id},
		{PERF_SAMPLE_STREAM_ID, &unused},      {PERF_SAMPLE_CPU, &event->sample.cpu},
		{PERF_SAMPLE_PERIOD, &unused},
	};

	for (size_t i = 0; i < ARRAY_SIZE(order); i++) {
		if (!(sample_type & order[i].bit))
			continue;
		*order[i].place = offset;
		offset += sizeof(uint64_t);
	}
	event->sample.id = identifier ? identifier : id;
	event->sample_words_bytes = offset;
}

/* Other records end with these fields. */
static void plan_trailer(struct perf_event *event)
{
	uint64_t sample_type = event->desc.attr.sample_type;
	uint16_t distance = 0, identifier = 0, id = 0, unused;
	const struct {
		uint64_t bit;
		uint16_t *place;
	} order[] = {
		{PERF_SAMPLE_IDENTIFIER, &identifier},	  {PERF_SAMPLE_CPU, &event->trailer.cpu},
		{PERF_SAMPLE_STREAM_ID, &unused},	  {PERF_SAMPLE_ID, &id},
		{PERF_SAMPLE_TIME, &event->trailer.time}, {PERF_SAMPLE_TID, &event->trailer.tid},
	};

	if (!event->desc.attr.sample_id_all)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(order); i++) {
		if (!(sample_type & order[i].bit))
			continue;
		distance += sizeof(uint64_t);
		*order[i].place = distance;
	}
	event->trailer.id = identifier ? identifier : id;
	event->trailer_bytes = distance;
}

int perf_events_add(struct perf_events *events, const uint8_t *attr, size_t attr_bytes,
		    const uint8_t *ids, size_t nr_ids)
{
	_cleanup_free_ struct perf_event *event = calloc(1, sizeof(*event));
	struct perf_event **list, *added;
	uint32_t claimed_bytes;

	if (!event)
		return -ENOMEM;
	list = reallocarray(events->events, events->nr + 1, sizeof(struct perf_event *));
	if (!list)
		return -ENOMEM;
	events->events = list;
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
	plan_sample(event);
	plan_trailer(event);
	added = events->events[events->nr++] = steal_ptr(event);
	/* As in perf, all attributes agree on the position of the id, so the first one's counts. */
	if (events->nr > 1)
		events->sample_id = events->events[0]->sample.id;
	if (events->nr == 1)
		events->sample_time = added->sample.time;
	else if (events->sample_time != added->sample.time)
		events->sample_time = 0;
	return add_ids(events, added, ids, nr_ids);
}

void perf_event_plan_fields(struct perf_event *event)
{
	const struct perf_event_fields *fields = &event->fields;
	const struct perf_field_copy all[PERF_EVENT_MAX_COPIES] = {
		{fields->args[0], offsetof(struct perf_sample, args[0])},
		{fields->args[1], offsetof(struct perf_sample, args[1])},
		{fields->args[2], offsetof(struct perf_sample, args[2])},
		{fields->args[3], offsetof(struct perf_sample, args[3])},
		{fields->args[4], offsetof(struct perf_sample, args[4])},
		{fields->args[5], offsetof(struct perf_sample, args[5])},
		{fields->ret, offsetof(struct perf_sample, ret)},
		{fields->block, offsetof(struct perf_sample, block)},
		{fields->caller, offsetof(struct perf_sample, caller)},
		{fields->probe_address, offsetof(struct perf_sample, probe_address)},
		{fields->return_address, offsetof(struct perf_sample, return_address)},
		{fields->inside, offsetof(struct perf_sample, inside)},
	};

	const struct probe_schema *schema = event->desc.schema;

	_Static_assert(PERF_MAX_ARGS == 6, "the arguments above");
	event->block = probe_point_is_return(event->desc.point) ? fields->ret
		       : schema && schema->block_arg >= 0	? fields->args[schema->block_arg]
								: (struct perf_field){0};
	if (!schema || event->block.size_bytes != sizeof(uint64_t))
		event->block.size_bytes = 0;
	event->is_plain = perf_event_is_operation(&event->desc) &&
			  !(event->desc.attr.sample_type & ~PLAIN_SAMPLE_TYPE) &&
			  !event->desc.is_newtask && !event->desc.is_mark;
	event->nr_copies = event->raw_bytes_needed = 0;
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		uint64_t end = (uint64_t)all[i].field.offset + all[i].field.size_bytes;

		if (all[i].field.size_bytes == 0)
			continue;
		event->copies[event->nr_copies++] = all[i];
		if (end > event->raw_bytes_needed)
			event->raw_bytes_needed = end > UINT32_MAX ? UINT32_MAX : (uint32_t)end;
	}
}

/* Reads the 8 bytes at one of @event's positions in a record. */
static bool read_place(const struct perf_record *record, uint16_t in_sample, uint16_t in_trailer,
		       uint64_t *ret)
{
	size_t size_bytes = record->header.size;

	if (record->header.type == PERF_RECORD_SAMPLE)
		return perf_sample_word(record, in_sample, ret);
	if (in_trailer == 0 || sizeof(record->header) + in_trailer > size_bytes)
		return false;
	*ret = load_u64(record->bytes + size_bytes - in_trailer);
	return true;
}

/* Finds the event of a record that is not a sample, or whose event is unknown. */
uint64_t perf_events_recording(const struct perf_events *events)
{
	uint64_t lowest = FIRST_OWN_ID;

	for (size_t i = 0; i < events->nr_slots; i++)
		if (events->by_id[i].event && events->by_id[i].id < lowest)
			lowest = events->by_id[i].id;
	return lowest < FIRST_OWN_ID ? lowest : 0;
}

struct perf_event *perf_events_find_slowly(const struct perf_events *events,
					   const struct perf_record *record)
{
	bool is_sample = record->header.type == PERF_RECORD_SAMPLE;
	struct perf_event *first;
	const struct perf_event_id *found;
	uint64_t id;

	if (events->nr == 0)
		return NULL;
	first = events->events[0];
	if (events->nr == 1 || (!is_sample && !first->desc.attr.sample_id_all))
		return first;
	if (!read_place(record, first->sample.id, first->trailer.id, &id))
		return is_sample ? NULL : first;
	found = perf_events_slot(events, id);
	if (found->event)
		return found->event;
	/* Synthesized records have the id 0. */
	return is_sample && id != 0 ? NULL : first;
}

uint64_t perf_event_trailer_time(const struct perf_event *event, const struct perf_record *record)
{
	uint64_t time_ns;

	return read_place(record, 0, event->trailer.time, &time_ns) ? time_ns : 0;
}

void perf_event_read_trailer(const struct perf_event *event, const struct perf_record *record,
			     struct perf_origin *ret)
{
	uint64_t value;

	*ret = (struct perf_origin){.pid = -1, .tid = -1};
	ret->time_ns = perf_event_record_time(event, record);
	if (read_place(record, event->sample.tid, event->trailer.tid, &value)) {
		ret->pid = (pid_t)(uint32_t)value;
		ret->tid = (pid_t)(value >> 32);
	}
	if (read_place(record, event->sample.cpu, event->trailer.cpu, &value))
		ret->cpu = (uint32_t)value;
}
