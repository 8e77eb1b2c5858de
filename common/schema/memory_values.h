/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The values of a sample leakrec:memory, in bytes (process_memory.h). */
#ifndef LEAKTOOLS_SCHEMA_MEMORY_VALUES_H
#define LEAKTOOLS_SCHEMA_MEMORY_VALUES_H

enum memory_value {
	MEMORY_ANON,
	MEMORY_FILE,
	MEMORY_SHARED,
	MEMORY_SWAP,
	MEMORY_DATA,
	MEMORY_NR_VALUES,
};

/* The names of the event's fields, and those of the JSON report. */
#define MEMORY_VALUE_NAMES                                                                         \
	{                                                                                          \
		"anon", "file", "shared", "swap", "data"                                           \
	}

/* The number, from 1, of the turn in which this process was read. Each turn reads all processes. */
#define MEMORY_FIELD_TURN "turn"

#endif
