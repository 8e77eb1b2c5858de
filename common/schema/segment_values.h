/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Recordings in segments (leakrec --keep): the samples leakrec:segment and leakrec:held, with which
 * a segment begins. docs/segments.md has both.
 */
#ifndef LEAKTOOLS_SCHEMA_SEGMENT_VALUES_H
#define LEAKTOOLS_SCHEMA_SEGMENT_VALUES_H

/* The number of the segment, from 1 on. */
#define SEGMENT_FIELD_NUMBER "number"

/* The values of leakrec:segment. */
enum segment_value {
	SEGMENT_STARTED,       /* when the recording began, in ns, on the file's clock */
	SEGMENT_LOST,	       /* events that were lost before */
	SEGMENT_ONE_OF,	       /* of the blocks that are held, one in so many is listed */
	SEGMENT_WITHOUT_STACK, /* so many, or fewer, are not: there was no room for their stacks */
	SEGMENT_OUT_OF_ORDER,  /* events before: what is listed may have been released */
	SEGMENT_NR_VALUES,
};

#define SEGMENT_VALUE_NAMES                                                                        \
	{                                                                                          \
		"started", "lost", "one_of", "without_stack", "out_of_order"                       \
	}

/*
 * leakrec:held: how many blocks; the function that returned them (PROBE_FIELD_TEXT); where in the
 * raw data the array of them begins.
 */
#define HELD_FIELD_NUMBER   "nr"
#define HELD_FIELD_AT	    "at"
#define HELD_FUNCTION_BYTES 32

/* What the array has of each block, 64 bits each. */
enum held_value {
	HELD_ADDRESS,
	HELD_SIZE,
	HELD_ALLOCATED, /* the time of the event that returned it */
	HELD_NR_VALUES,
};

#endif
