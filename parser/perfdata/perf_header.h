/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads what precedes and follows the data of a perf.data file: the header, the attributes, and the
 * feature sections with formats and build-ids.
 *
 * If the recorder died, data.size is 0: the data goes on to the end of the file, and perf has not
 * written any feature sections. leakrec writes sections and a provisional table of them before the
 * data; this reader finds and uses that table.
 */
#ifndef LEAKTOOLS_PARSER_PERF_HEADER_H
#define LEAKTOOLS_PARSER_PERF_HEADER_H

#include "common/perf_disk.h"
#include "parser/perfdata/perf_command.h"
#include "parser/perfdata/recording_origin.h"
#include "parser/records/perf_formats.h"

struct perf_header {
	bool is_pipe;			     /* records carry attributes and features */
	bool is_text;			     /* may be the text of perf script */
	uint8_t head[PERF_PIPE_HEADER_SIZE]; /* the bytes of a text that were read */
	size_t head_bytes;
	bool unfinished; /* data.size was 0 */
	uint64_t data_offset;
	uint64_t data_end; /* UINT64_MAX: the end of the source */
	struct perf_command command;
	struct recording_origin origin;
};

/*
 * Reads the header of @source (a pipe that carries a file is spooled). From a file it also reads
 * the attributes into @events and the formats into @formats, and passes the build-ids to @consumer.
 * Leaves @source at the first record. Returns 0, a callback's value, or a negative errno
 * (reported).
 */
int perf_header_read(struct perf_source *source, struct perf_events *events,
		     struct perf_formats *formats, const struct perf_consumer *consumer,
		     struct perf_header *ret);

#endif
