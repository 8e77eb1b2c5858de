/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Moves records from the kernel's rings to the writer, in rounds. A round consumes what each ring
 * holds when the round comes to it, and ends with a FINISHED_ROUND record. Readers put records in
 * time order by perf's rule (tools/perf/util/session.c): a later round brings nothing older than
 * the newest record of the round before the last. BPF programs take the time of a record after they
 * have reserved its room, so the rule holds where a ring is read up to its end. A round in which a
 * record was still being written does not end.
 *
 * Where leakrec unwinds stacks, a sample must meet the mappings of its time. So a round consumes
 * only samples from before it began: the side rings, which are drained first, then hold every
 * mapping that these need. It consumes the samples of all rings in portions, and applies a mapping
 * between the portions before and after its time. A sample that was still being written may miss
 * its portion. Its thread was still in the probe then, so what its stack needs is still mapped.
 *
 * Where a recording is cut into segments, each round takes no side records from after it began
 * either; and it counts as one in which a record was still being written if such a sample missed
 * it.
 */
#ifndef LEAKTOOLS_RECORDER_RING_READER_H
#define LEAKTOOLS_RECORDER_RING_READER_H

#include "recorder/events/record_events.h"
#include "recorder/held/held_blocks.h"
#include "recorder/output/build_ids.h"
#include "recorder/output/live_unwinder.h"
#include "recorder/output/perf_writer.h"
#include "recorder/programs/bpf_recorder.h"
#include "recorder/segments/segments.h"
#include "recorder/drain/mark_texts.h"
#include "recorder/drain/ring_advice.h"
#include "recorder/windows/windows.h"

/* FORK and EXIT records. */
struct task_records {
	struct perf_disk_task *records;
	size_t nr, nr_allocated;
};

struct ring_reader {
	struct record_events *events;
	struct perf_writer *writer;
	struct build_ids *build_ids;	/* of files that are mapped while recording */
	struct bpf_recorder *recorder;	/* or NULL: perf events record */
	struct live_unwinder *unwinder; /* unwinds dumps; NULL: samples are written as they are */
	struct held_blocks *held;	/* gets what is written; or NULL */
	const struct windows *windows;	/* or NULL: everything is recorded */
	struct segments *segments;	/* or NULL: the recording is never cut */
	bool stopped;			/* nothing is recorded any more */
	uint64_t start_ns, end_ns;	/* CLOCK_MONOTONIC, as the samples' */
	/* Counts. */
	uint64_t samples;      /* of probes */
	uint64_t consumed;     /* samples from perf rings, with those left out */
	uint64_t lost;	       /* as LOST records say */
	uint64_t sample_bytes; /* of @samples and of those left out, in the rings */
	struct mark_texts mark_texts;
	/* state of this round */
	struct task_records tasks;
	uint64_t round_ns;    /* when it began; UINT64_MAX: the last one */
	uint64_t whole_ns;    /* when the last round began in which no record was being written */
	bool busy;	      /* a record was still being written */
	bool any;	      /* there were records since the last PERF_RECORD_FINISHED_ROUND */
	uint64_t finished_ns; /* when the round of that one began */
	uint64_t wrapped[UINT16_MAX / sizeof(uint64_t) + 1]; /* a record, in one piece */
};

/* What the fullest ring had no room for. */
struct ring_losses ring_reader_losses(const struct ring_reader *reader, uint32_t ring_pages);

/*
 * Begins a round: drains the side rings. The caller handles reader->tasks. Returns 0 or the
 * writer's error.
 */
int ring_reader_drain_side(struct ring_reader *reader);

/*
 * Ends the round: drains the samples. *@ret_most_bytes: what the fullest perf ring held. Returns 0
 * or the writer's error.
 */
int ring_reader_drain_samples(struct ring_reader *reader, uint64_t *ret_most_bytes);

void ring_reader_deinit(struct ring_reader *reader);

#endif
