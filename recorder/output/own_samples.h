/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Samples that leakrec itself writes. Each is a sample of a tracepoint event leakrec:NAME, which no
 * kernel has; perf script prints it like any other. Readers find its values by the fields' names.
 */
#ifndef LEAKTOOLS_RECORDER_OWN_SAMPLES_H
#define LEAKTOOLS_RECORDER_OWN_SAMPLES_H

#include "common/schema/memory_values.h"
#include "recorder/output/perf_writer.h"

enum own_sample {
	OWN_MARK,      /* by_signal; number */
	OWN_DOUBT,     /* the same */
	OWN_RECORDING, /* end: 0 where the recording begins, 1 where it ends */
	OWN_MEMORY,    /* turn; enum memory_value's */
	OWN_REACH,     /* enum reach_class; enum reach_value's */
	OWN_HOLDER,    /* number; a text */
	OWN_UNSEEN,    /* the same: the scan, and what leakscan has not seen in it */
	OWN_WINDOW,    /* open: 1 where a window begins, 0 where it ends; pace */
	OWN_LOOK,      /* enum look_state; enum look_value's */
	OWN_SEGMENT,   /* number; enum segment_value's */
	OWN_HELD,      /* struct own_held */
	OWN_CALLS,     /* number; enum calls_value's */
	OWN_SAMPLE_NR,
};

#define OWN_SAMPLE_MAX_VALUES MEMORY_NR_VALUES

/* Adds the event to @events, before the header is written. Returns 0 or -ENOMEM. */
int own_samples_describe(struct record_events *events, const struct record_config *config,
			 enum own_sample kind);

/*
 * Writes a sample of process @pid at @time_ns (CLOCK_MONOTONIC), with the first field, of 32 bits,
 * and the others' @values (NULL: there are none). Returns 0 or the writer's error.
 */
int own_samples_write(struct perf_writer *writer, enum own_sample kind, pid_t pid, uint64_t time_ns,
		      uint32_t first, const uint64_t *values);

/* The same for a sample with a text, of less than HOLDER_TEXT_BYTES; a longer one is cut. */
int own_samples_write_text(struct perf_writer *writer, enum own_sample kind, pid_t pid,
			   uint64_t time_ns, uint32_t first, const char *text);

/* Blocks of one process that are held, and the stack of their allocations. */
struct own_held {
	const char *function;
	const uint64_t *chain; /* as in a sample: begins with PERF_CONTEXT_USER */
	size_t nr_chain;
	const uint64_t *values; /* enum held_value's of each block */
	uint32_t nr_blocks;
};

/* Writes OWN_HELD, which must have room in a record. */
int own_samples_write_held(struct perf_writer *writer, pid_t pid, uint64_t time_ns,
			   const struct own_held *held);

#endif
