/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the recorder's command line, from the file's header, says of the recording. */
#ifndef LEAKTOOLS_PARSER_PERF_COMMAND_H
#define LEAKTOOLS_PARSER_PERF_COMMAND_H

#include "common/size_range.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The words of the section, a header's strings. */
struct perf_words {
	const uint8_t *at;
	size_t left;
};

/* The next word: its size, and its bytes up to a NUL. NULL: there is none. */
const char *perf_words_next(struct perf_words *words);
/* The words of the section CMDLINE, which begins with their number. */
struct perf_words perf_words_of_command(const uint8_t *section, size_t size_bytes);

enum perf_recorder { PERF_RECORDER_UNKNOWN, PERF_RECORDER_PERF, PERF_RECORDER_LEAKREC };

struct perf_command {
	enum perf_recorder recorder;
	bool unwinds; /* leakrec with --call-graph dwarf, the default: stacks have all frames */
	bool drops;   /* leakrec --on-overload drop */
	uint32_t dump_bytes; /* leakrec --call-graph dwarf,BYTES; 0: none */
	bool starts_command; /* leakrec COMMAND: no target is older than the recording */
	bool has_sizes;	     /* leakrec --size: */
	struct size_range sizes;
	const char *partial; /* leakrec's option by which calls are missing; NULL: none is */
};

/* Parses the section CMDLINE, which may be malformed. */
struct perf_command perf_command_parse(const uint8_t *section, size_t size_bytes);

#endif
