/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The events of a recording: its attributes, which of them a record belongs to (by id), and where
 * the fields that say so stand in a record.
 */
#ifndef LEAKTOOLS_PARSER_PERF_EVENTS_H
#define LEAKTOOLS_PARSER_PERF_EVENTS_H

#include "parser/bytes/perf_chunks.h"
#include "parser/records/perf_event_types.h"
#include "common/hash.h"

/* Where a value stands in a sample's raw data; size_bytes 0: nowhere. */
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
	struct perf_field mark_text; /* its place in the raw data, and its bytes << 16 */
};

/*
 * Where the fields of 8 bytes stand that say what a record is: in samples their distance from the
 * record's start, in trailers from its end; 0: there is none.
 */
struct perf_id_places {
	uint16_t id, time, tid, cpu;
};

/* A value of the raw data, and where in struct perf_sample it goes. */
struct perf_field_copy {
	struct perf_field field;
	uint16_t to;
};

#define PERF_EVENT_MAX_COPIES (PERF_MAX_ARGS + 6)

struct perf_event {
	struct perf_event_desc desc;
	struct perf_event_fields fields;
	bool bound;	      /* its format was found and read (perf_formats_bind()) */
	size_t trailer_bytes; /* of the records other than samples */

	struct perf_id_places sample, trailer;
	uint16_t sample_ip;	     /* as those in @sample */
	uint16_t sample_words_bytes; /* the header, and the fields that have 8 bytes each */

	/* Of the fields, those that there are. */
	struct perf_field_copy copies[PERF_EVENT_MAX_COPIES];
	uint32_t nr_copies;
	uint32_t raw_bytes_needed;
	bool is_plain;		 /* an operation, whose samples end with the raw data */
	struct perf_field block; /* of 8 bytes, or none: the block that a sample is about */
};

/* A slot of a table with linear probing. */
struct perf_event_id {
	uint64_t id;
	struct perf_event *event; /* NULL: the slot is empty */
};

struct perf_events {
	struct perf_event **events;
	size_t nr;
	/* Where samples have the id that tells their events apart; 0: nowhere, or it needs not. */
	uint16_t sample_id;
	uint16_t sample_time; /* where all samples have their time; 0: nowhere, or it differs */
	struct perf_event_id *by_id;
	size_t nr_ids, nr_slots; /* a power of two, at most half of them in use; or 0 */
	uint64_t seed;		 /* of their hash */
};

void perf_events_deinit(struct perf_events *events);

/*
 * Adds the event that the @attr_bytes at @attr describe: of any version, older ones are filled up
 * with zeros. @ids, @nr_ids of them, may be misaligned. Returns 0, -ENOMEM, or -EINVAL where the
 * attribute makes no sense (not reported).
 */
int perf_events_add(struct perf_events *events, const uint8_t *attr, size_t attr_bytes,
		    const uint8_t *ids, size_t nr_ids);

struct perf_event *perf_events_find_slowly(const struct perf_events *events,
					   const struct perf_record *record);

/* The slot of @id, or the empty one where it would go. */
static inline struct perf_event_id *perf_events_slot(const struct perf_events *events, uint64_t id)
{
	size_t mask = events->nr_slots - 1;
	size_t at = hash_mix(id ^ events->seed, 0xd6e8feb86659fd93) & mask;

	while (events->by_id[at].event && events->by_id[at].id != id)
		at = (at + 1) & mask;
	return &events->by_id[at];
}

/* Reads the 8 bytes at a @place of a sample. Returns false if there is none. */
static inline bool perf_sample_word(const struct perf_record *record, uint16_t place, uint64_t *ret)
{
	if (place == 0 || place + sizeof(*ret) > record->header.size)
		return false;
	memcpy(ret, record->bytes + place, sizeof(*ret));
	return true;
}

/* The event that a record of the kernel's belongs to, or NULL. */
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

/* @event's fields are known: prepares reading them. */
void perf_event_plan_fields(struct perf_event *event);

/* A record's time by @event's sample type; 0: it has none. */
uint64_t perf_event_trailer_time(const struct perf_event *event, const struct perf_record *record);

static inline uint64_t perf_event_record_time(const struct perf_event *event,
					      const struct perf_record *record)
{
	uint64_t time_ns;

	if (record->header.type != PERF_RECORD_SAMPLE)
		return perf_event_trailer_time(event, record);
	return perf_sample_word(record, event->sample.time, &time_ns) ? time_ns : 0;
}

/* Fills all but the sequence number from the trailer of a record that is no sample. */
void perf_event_read_trailer(const struct perf_event *event, const struct perf_record *record,
			     struct perf_origin *ret);

#endif
