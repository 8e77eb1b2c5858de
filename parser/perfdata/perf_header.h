/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What stands before and behind the data of a perf.data file: the header, the attributes, and the
 * feature sections with formats and build-ids.
 *
 * A recorder that dies leaves data.size 0: the data then goes on to the end of the file, and perf's
 * feature sections were never written. leakrec writes the sections and a provisional table of them
 * before the data; that table is found and used.
 */
#ifndef LEAKTOOLS_PARSER_PERF_HEADER_H
#define LEAKTOOLS_PARSER_PERF_HEADER_H

#include "common/perf_disk.h"
#include "parser/records/perf_formats.h"

struct perf_header {
	bool is_pipe;			     /* then the stream's records tell all that follows */
	bool is_text;			     /* perf script's, perhaps: no recording */
	uint8_t head[PERF_PIPE_HEADER_SIZE]; /* of a text: what was read of it */
	size_t head_bytes;
	bool unfinished; /* data.size was 0 */
	uint64_t data_offset;
	uint64_t data_end; /* UINT64_MAX: where the source ends */
};

/*
 * Reads the header of @source (a pipe that carries a file is spooled) and, of a file, its
 * attributes into @events and its formats into @formats, and gives its build-ids to @consumer.
 * Leaves @source at the first record. Returns 0, a callback's value, or a negative errno after
 * reporting it.
 */
int perf_header_read(struct perf_source *source, struct perf_events *events,
		     struct perf_formats *formats, const struct perf_consumer *consumer,
		     struct perf_header *ret);

#endif
