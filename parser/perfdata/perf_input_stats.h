/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What was read of a recording. */
#ifndef LEAKTOOLS_PARSER_PERF_INPUT_STATS_H
#define LEAKTOOLS_PARSER_PERF_INPUT_STATS_H

#include <stdbool.h>
#include <stdint.h>

struct perf_input_stats {
	uint64_t records; /* all, of any type */
	uint64_t samples;
	uint64_t probe_samples;	  /* of events that the schema knows */
	uint64_t unknown_records; /* of a type that this version does not know */
	uint64_t undecodable;	  /* samples whose event or format the file does not describe */
	uint64_t out_of_order;	  /* came after their time had been delivered */
	uint64_t repeated;	  /* left out: they follow themselves */
	bool truncated;	   /* the file ends within a record, or its writer never finished it */
	uint64_t first_ns; /* the time of the first probe event of the file read last; 0: none */
};

#endif
