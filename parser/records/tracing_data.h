/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads a block of tracing data (a feature section, or a record's payload): the formats of the
 * recording's tracepoints.
 */
#ifndef LEAKTOOLS_PARSER_TRACING_DATA_H
#define LEAKTOOLS_PARSER_TRACING_DATA_H

#include <stddef.h>
#include <stdint.h>
#include <traceevent/event-parse.h>

/*
 * Adds to @tep the formats in @data, which lies at @offset of the file @name. Returns 0, -EINVAL
 * (reported) or -ENOMEM.
 */
int tracing_data_parse(struct tep_handle *tep, const char *name, uint64_t offset,
		       const uint8_t *data, size_t size_bytes);

#endif
