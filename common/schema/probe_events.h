/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The names of probe events: what they mean, and how they are made. */
#ifndef LEAKTOOLS_COMMON_PROBE_EVENTS_H
#define LEAKTOOLS_COMMON_PROBE_EVENTS_H

#include "common/schema/probe_schema.h"

/*
 * The row and the point that an event's name means: "malloc", "malloc_ret", "malloc_ret__return",
 * "malloc__return", "malloc_call", "operator_new_exit", "posix_memalign_store", each perhaps with
 * the "_1" or "_2" that perf probe appends for further locations. The name may also begin with a
 * symbol that stands for a row: "je_malloc_ret", "_Znwm". Returns 0, or -ENOENT.
 */
int probe_schema_parse_event(const char *event_name, const struct probe_schema **ret_schema,
			     enum probe_point *ret_point);

/*
 * Makes the event's name for a point of @function: the function's name, with "_ret", "_store",
 * "_call" or "_exit". Returns 0, or -E2BIG if @size bytes do not hold it.
 */
int probe_schema_event_name(const char *function, enum probe_point point, char *buffer,
			    size_t size);

/* True if an event of that name is LEAK_MARK()'s: "leak_mark", "leak_mark_1", ... */
bool probe_schema_is_mark(const char *event_name);

#endif
