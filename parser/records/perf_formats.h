/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The tracepoint formats that a recording carries (its tracing data), and what they say about the
 * events we decode: the schema's probes and task:task_newtask.
 *
 * libtraceevent parses the formats, from a text that is written anew from what the file holds: it
 * was not made for hostile input (1.7.1 leaks what it has parsed of a field it then rejects).
 */
#ifndef LEAKTOOLS_PARSER_PERF_FORMATS_H
#define LEAKTOOLS_PARSER_PERF_FORMATS_H

#include "common/schema/resource_schema.h"
#include "parser/records/perf_events.h"

struct perf_formats;

/* @resources, or NULL, gets the calls that events of resources tell of. */
int perf_formats_create(struct resource_schemas *resources, struct perf_formats **ret);
void perf_formats_destroy(struct perf_formats *formats);

/*
 * Adds the formats of one block of tracing data; @name and @offset say in messages where it stood.
 * Returns 0, -ENOMEM, or -EINVAL after reporting what is wrong with it.
 */
int perf_formats_add(struct perf_formats *formats, const char *name, uint64_t offset,
		     const uint8_t *data, size_t size_bytes);

/*
 * Completes each of @events whose format is known and was not before: its names, its schema and the
 * places of its fields. Probes that lack an argument are reported. Names are @formats's.
 */
void perf_formats_bind(const struct perf_formats *formats, const char *name,
		       struct perf_events *events);

/* The value at @field in @raw; false: it does not lie within @raw_bytes. */
bool perf_field_read(const struct perf_field *field, const uint8_t *raw, size_t raw_bytes,
		     uint64_t *ret);

/* The same of a @field that has a size and does lie within. */
uint64_t perf_field_load(const struct perf_field *field, const uint8_t *raw);

#endif
