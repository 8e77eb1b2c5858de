/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Completes marks (LEAK_MARK()) whose text the kernel has not read: it must not wait for a page
 * that is not in memory (samples_shared.h). Perf events cannot read a text without waiting, so they
 * record its address and the top of the stack.
 *
 * A text that the program cannot change is in the file that has the mark. Others may have changed
 * since: they are read from the process only for perf events, which wake leakrec at each mark, so
 * that this is soon. A mark whose text is not found gets one that says so.
 */
#ifndef LEAKTOOLS_RECORDER_MARK_TEXTS_H
#define LEAKTOOLS_RECORDER_MARK_TEXTS_H

#include "recorder/bpf/samples_shared.h"
#include "recorder/events/record_events.h"
#include "recorder/programs/bpf_sites.h"

#include <elf.h>

#define MARK_MAX_SEGMENTS 64 /* of a file */

/* So often may a read take longer. A busy machine is late at times, a hostile process each time. */
#define MARK_MAX_LATE 10

/* A read from a process that was not done in time. */
struct late_read {
	struct read_thread *thread;
	struct text_request *request; /* that the thread uses until it is done */
};

struct mark_texts {
	const struct probe_file *file; /* that @segments are of; NULL: none */
	Elf64_Phdr segments[MARK_MAX_SEGMENTS];
	size_t nr_segments;
	struct mark_record record;	      /* the last one that was completed */
	struct read_thread *thread;	      /* reads from processes; NULL: not yet */
	struct text_request *late;	      /* that the thread has not done in time; NULL: none */
	uint64_t late_ns;		      /* when the latest one was late */
	unsigned int nr_late;		      /* so many were that are not forgotten */
	struct late_read left[MARK_MAX_LATE]; /* that may never end */
	unsigned int nr_left;
};

void mark_texts_deinit(struct mark_texts *texts);

/* Completes a mark that a recording program has written. */
const struct perf_event_header *mark_texts_complete(struct mark_texts *texts,
						    const struct watched_sites *sites,
						    const struct mark_record *unread);

/* Turns the sample of a mark's perf event into a whole mark. */
const struct perf_event_header *mark_texts_convert(struct mark_texts *texts,
						   const struct record_event *event,
						   const struct perf_event_header *sample);

#endif
