/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The events of a recording: its attributes, which of them a record belongs to (by id), and where
 * the fields that say so stand in a record.
 */
#ifndef LEAKTOOLS_PARSER_PERF_EVENTS_H
#define LEAKTOOLS_PARSER_PERF_EVENTS_H

#include "parser/perf_chunks.h"
#include "parser/perf_event_types.h"

/* Where a value stands in a sample's raw data; size_bytes 0: nowhere. */
struct perf_field {
	uint32_t offset;
	uint8_t size_bytes;
	bool is_signed;
};

struct perf_event_fields {
	struct perf_field args[PROBE_MAX_ARGS];
	struct perf_field ret;
	struct perf_field block;
	struct perf_field caller;
	struct perf_field probe_address;
	struct perf_field return_address;
	struct perf_field newtask_pid;
	struct perf_field newtask_clone_flags;
};

struct perf_event {
	struct perf_event_desc desc;
	struct perf_event_fields fields;
	bool bound;	      /* its format was found and read (perf_formats_bind()) */
	size_t trailer_bytes; /* of the records other than samples */
};

struct perf_event_id;

struct perf_events {
	struct perf_event **events;
	size_t nr;
	struct perf_event_id *by_id;	  /* a uthash */
	struct perf_event_id **id_arrays; /* one for each event */
};

void perf_events_deinit(struct perf_events *events);

/*
 * Adds the event that the @attr_bytes at @attr describe: of any version, older ones are filled up
 * with zeros. @ids, @nr_ids of them, may be misaligned. Returns 0, -ENOMEM, or -EINVAL where the
 * attribute makes no sense (not reported).
 */
int perf_events_add(struct perf_events *events, const uint8_t *attr, size_t attr_bytes,
		    const uint8_t *ids, size_t nr_ids);

/* The event that a record of the kernel's belongs to, or NULL. */
struct perf_event *perf_events_find(const struct perf_events *events,
				    const struct perf_record *record);

/* A record's time by @event's sample type; 0: it has none. */
uint64_t perf_event_record_time(const struct perf_event *event, const struct perf_record *record);

/* Fills all but the sequence number from the trailer of a record that is no sample. */
void perf_event_read_trailer(const struct perf_event *event, const struct perf_record *record,
			     struct perf_origin *ret);

#endif
