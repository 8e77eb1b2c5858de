/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The events of a recording: its attributes, the ids by which records belong to them, and the
 * positions of the fields in a record that say so.
 */
#ifndef LEAKTOOLS_PARSER_PERF_EVENTS_H
#define LEAKTOOLS_PARSER_PERF_EVENTS_H

#include "parser/bytes/perf_chunks.h"
#include "parser/records/perf_event_types.h"
#include "common/hash.h"

/* The position of a value in a sample's raw data; size_bytes 0: none. */
struct perf_field {
	uint32_t offset;
	uint8_t size_bytes;
	bool is_signed;
};

struct perf_event_fields {
	struct perf_field args[PERF_MAX_ARGS];
	struct perf_field ret;
	struct perf_field block;
	struct perf_field caller;
	struct perf_field probe_address;
	struct perf_field return_address;
	struct perf_field inside;
	struct perf_field newtask_pid;
	struct perf_field newtask_clone_flags;
	struct perf_field mark_number;
	struct perf_field mark_text; /* its offset in the raw data, and its size << 16 */
};

/*
 * The positions of the 8-byte fields that say what a record is. In samples they are distances from
 * the record's start, in trailers from its end; 0: none.
 */
struct perf_id_places {
	uint16_t id, time, tid, cpu;
};

/* A value of the raw data, and its destination in struct perf_sample. */
struct perf_field_copy {
	struct perf_field field;
	uint16_t to;
};

#define PERF_EVENT_MAX_COPIES (PERF_MAX_ARGS + 6)

struct perf_event {
	struct perf_event_desc desc;
	struct perf_event_fields fields;
	bool bound;	      /* its format was found and read (perf_formats_bind()) */
	size_t trailer_bytes; /* of records other than samples */

	struct perf_id_places sample, trailer;
	uint16_t sample_ip;	     /* positions as in @sample */
	uint16_t sample_words_bytes; /* the header and the 8-byte fields */

	/* The fields that exist. */
	struct perf_field_copy copies[PERF_EVENT_MAX_COPIES];
	uint32_t nr_copies;
	uint32_t raw_bytes_needed;
	bool is_plain;		 /* an operation, whose samples end with the raw data */
	struct perf_field block; /* the block of a sample: 8 bytes, or none */
};

/* A slot of a hash table with linear probing. */
struct perf_event_id {
	uint64_t id;
	struct perf_event *event; /* NULL: the slot is empty */
};

struct perf_events {
	struct perf_event **events;
	size_t nr;
	/* Position of the id in samples; 0: none, or not needed. */
	uint16_t sample_id;
	uint16_t sample_time; /* position of the time in all samples; 0: none, or it differs */
	struct perf_event_id *by_id;
	size_t nr_ids, nr_slots; /* @nr_slots is a power of two, at most half in use; or 0 */
	uint64_t seed;		 /* of their hash */
};

void perf_events_deinit(struct perf_events *events);

/*
 * Adds the event that the @attr_bytes at @attr describe. Attributes of older versions are filled up
 * with zeros. @ids, @nr_ids of them, may be misaligned. Returns 0, -ENOMEM, or -EINVAL for a
 * malformed attribute (not reported).
 */
int perf_events_add(struct perf_events *events, const uint8_t *attr, size_t attr_bytes,
		    const uint8_t *ids, size_t nr_ids);

/*
 * What the files of one recording have in common, and no other file has: the lowest id that the
 * kernel gave to one of its events. The kernel gives each id once (Linux 6.1,
 * kernel/events/core.c, perf_event_alloc()). 0: the file has none.
 */
uint64_t perf_events_recording(const struct perf_events *events);

struct perf_event *perf_events_find_slowly(const struct perf_events *events,
					   const struct perf_record *record);

/* The slot of @id, or the empty slot where it belongs. */
static inline struct perf_event_id *perf_events_slot(const struct perf_events *events, uint64_t id)
{
	size_t mask = events->nr_slots - 1;
	size_t at = hash_mix(id ^ events->seed, 0xd6e8feb86659fd93) & mask;

	while (events->by_id[at].event && events->by_id[at].id != id)
		at = (at + 1) & mask;
	return &events->by_id[at];
}

/* Reads the 8 bytes at @place of a sample. Returns false if it is too short. */
static inline bool perf_sample_word(const struct perf_record *record, uint16_t place, uint64_t *ret)
{
	if (place == 0 || place + sizeof(*ret) > record->header.size)
		return false;
	memcpy(ret, record->bytes + place, sizeof(*ret));
	return true;
}

/* Finds the event of a kernel record. NULL: unknown. */
static inline struct perf_event *perf_events_find(const struct perf_events *events,
						  const struct perf_record *record)
{
	struct perf_event *event = NULL;
	uint64_t id;

	if (record->header.type == PERF_RECORD_SAMPLE &&
	    perf_sample_word(record, events->sample_id, &id))
		event = perf_events_slot(events, id)->event;
	return event ? event : perf_events_find_slowly(events, record);
}

/* Prepares the reading of @event's fields, which are known now. */
void perf_event_plan_fields(struct perf_event *event);

/* The time of a record by @event's sample type; 0: it has none. */
uint64_t perf_event_trailer_time(const struct perf_event *event, const struct perf_record *record);

static inline uint64_t perf_event_record_time(const struct perf_event *event,
					      const struct perf_record *record)
{
	uint64_t time_ns;

	if (record->header.type != PERF_RECORD_SAMPLE)
		return perf_event_trailer_time(event, record);
	return perf_sample_word(record, event->sample.time, &time_ns) ? time_ns : 0;
}

/* Reads all but the sequence number from the trailer of a record that is not a sample. */
void perf_event_read_trailer(const struct perf_event *event, const struct perf_record *record,
			     struct perf_origin *ret);

#endif
