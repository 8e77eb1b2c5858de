/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Recordings in windows (leakrec --budget): the samples leakrec:window and leakrec:look.
 *
 * Allocations and frees are observed only within windows. A look is one check of a block, from
 * outside and without probes. docs/perf-data.md has both samples.
 */
#ifndef LEAKTOOLS_SCHEMA_LOOK_STATE_H
#define LEAKTOOLS_SCHEMA_LOOK_STATE_H

/* The field of leakrec:window. 1: observed from here on; 0: observed until here. */
#define WINDOW_FIELD_OPEN "open"

/*
 * Where a window ends: how fast the program worked in the latest windows, in 1/1000 of its mean
 * pace. 0: not known, as the program was idle; if it is known of the next window, that one holds.
 * Older recordings don't have it.
 */
#define WINDOW_FIELD_PACE "pace"

/* The values of leakrec:window. */
enum window_value {
	WINDOW_PACE,
	WINDOW_NR_VALUES,
};

/*
 * The number of the leakrec:doubt that ends such a recording. Readers that know windows ignore it;
 * others call what is held doubtful, since they see no releases outside of windows.
 */
#define WINDOW_DOUBT 0xffffffff

/* What a look found at the block's address. 0 is no state: a sample without one. */
enum look_state {
	LOOK_GONE = 1,	/* its chunk is free or has another size, or the memory is unmapped */
	LOOK_TOUCHED,	/* other content than at the look before, or this is the first look */
	LOOK_UNTOUCHED, /* the same content; it may still be a later block at its address */
};

/* The values of leakrec:look. Address and time of the allocation identify the block. */
enum look_value {
	LOOK_ADDRESS,
	LOOK_ALLOCATED, /* the time of the event that returned it, in ns, on the file's clock */
	LOOK_NR_VALUES,
};

#define LOOK_FIELD_STATE "state"
#define LOOK_VALUE_NAMES                                                                           \
	{                                                                                          \
		"address", "allocated"                                                             \
	}

#endif
