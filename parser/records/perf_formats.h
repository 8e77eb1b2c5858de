/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The tracepoint formats of a recording (its tracing data), and the events that they describe: the
 * schema's probes, system calls, resources, marks and task:task_newtask.
 *
 * libtraceevent parses the formats. It was not made for hostile input (1.7.1 leaks the parsed part
 * of a field that it rejects), so it gets a text that is generated from the file's
 * (tracing_data.c).
 */
#ifndef LEAKTOOLS_PARSER_PERF_FORMATS_H
#define LEAKTOOLS_PARSER_PERF_FORMATS_H

#include "common/schema/resource_schema.h"
#include "parser/records/perf_events.h"

struct perf_formats;

/* @resources (or NULL) receives the calls of resources. */
int perf_formats_create(struct resource_schemas *resources, struct perf_formats **ret);
void perf_formats_destroy(struct perf_formats *formats);

/*
 * Adds the formats of one block of tracing data. @name and @offset give its position in messages.
 * Returns 0, -ENOMEM, or -EINVAL (reported).
 */
int perf_formats_add(struct perf_formats *formats, const char *name, uint64_t offset,
		     const uint8_t *data, size_t size_bytes);

/*
 * Completes each of @events whose format has become known: its names, its schema and the positions
 * of its fields. Reports probes that lack an argument. @formats owns the names.
 */
void perf_formats_bind(const struct perf_formats *formats, const char *name,
		       struct perf_events *events);

/* Reads the value at @field in @raw. Returns false if it lies outside @raw_bytes. */
bool perf_field_read(const struct perf_field *field, const uint8_t *raw, size_t raw_bytes,
		     uint64_t *ret);

/* Reads a @field that has a size and lies inside. */
uint64_t perf_field_load(const struct perf_field *field, const uint8_t *raw);

#endif
