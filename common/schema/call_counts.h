/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Recordings in windows (leakrec --budget): the samples leakrec:calls.
 *
 * Windows show only a few of a busy program's allocations. For a function through which a cause
 * allocates, and which is called rarely, leakrec counts all calls, also between windows. Each
 * sample has what has been counted so far. docs/perf-data.md has the sample.
 */
#ifndef LEAKTOOLS_SCHEMA_CALL_COUNTS_H
#define LEAKTOOLS_SCHEMA_CALL_COUNTS_H

/* Which function, from 1; no other one of the recording has the number. */
#define CALLS_FIELD_NUMBER "number"

enum calls_value {
	CALLS_ADDRESS,	/* an address in the function, as the stacks have it: behind a call */
	CALLS_SINCE,	/* counted from this time on, in ns, on the file's clock */
	CALLS_ALL,	/* calls of the function since then */
	CALLS_OBSERVED, /* those within windows */
	CALLS_BLOCKS,	/* allocations in these windows whose stacks have the address */
	CALLS_NR_VALUES,
};

#define CALLS_VALUE_NAMES                                                                          \
	{                                                                                          \
		"address", "since", "all", "observed", "blocks"                                    \
	}

#endif
