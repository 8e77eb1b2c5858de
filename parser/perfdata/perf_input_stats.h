/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counts what was read of a recording. */
#ifndef LEAKTOOLS_PARSER_PERF_INPUT_STATS_H
#define LEAKTOOLS_PARSER_PERF_INPUT_STATS_H

#include "parser/perfdata/perf_command.h"
#include "parser/perfdata/recording_origin.h"

#include <stdbool.h>
#include <stdint.h>

struct perf_input_stats {
	uint64_t records; /* all, of any type */
	uint64_t samples;
	uint64_t probe_samples;	  /* of the schema's events */
	uint64_t unknown_records; /* of a type that this version does not know */
	uint64_t undecodable;	  /* malformed, or the file does not describe their event */
	uint64_t out_of_order;	  /* earlier than a record already delivered */
	uint64_t repeated;	  /* dropped because they repeat the record before */
	bool truncated;	    /* the file ends inside a record, or its writer did not finish it */
	bool may_grow;	    /* set by the caller: the file may still be written */
	bool not_inherited; /* events stay with the tasks that they were opened for */
	bool has_text;	    /* a file was perf script's text: its frames lack places in files */
	struct perf_command command;
	struct recording_origin origin;
	uint32_t dump_bytes; /* of each stack dump; 0: no dumps, or they differ */
	uint64_t latest_ns;  /* the latest time delivered */
	uint64_t recording;  /* identifies it (perf_events_recording()); 0: not known */
};

#endif
