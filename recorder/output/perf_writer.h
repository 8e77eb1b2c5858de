/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Writes a recording: a perf.data file, or perf's pipe format if the output cannot seek or is "-".
 *
 * File layout: perf expects the table of feature sections after the data; the sections may be
 * anywhere. All but the build-ids are known when recording starts, so they come first:
 *
 *   header | ids | attributes | sections | table, provisional | data | table | build-ids
 *
 * Until perf_writer_finish() the header says that the data is empty and starts at the provisional
 * table, so perf finds the table there. If the recorder is killed, the file still has its
 * attributes and formats, and the data follows the provisional table (docs/perf-data.md).
 *
 * A separate thread writes (recorder/output/write_queue.h), so a record is written, and fails,
 * later. If the output is slow and the buffers are full, adding waits. A failed write is reported
 * once; later records are dropped, and perf_writer_finish() keeps all that were written whole.
 */
#ifndef LEAKTOOLS_RECORDER_PERF_WRITER_H
#define LEAKTOOLS_RECORDER_PERF_WRITER_H

#include "recorder/output/build_ids.h"
#include "recorder/events/record_events.h"

#include <stdbool.h>
#include <stdint.h>

struct perf_writer;

/*
 * Takes over @fd, a pipe or a file, which keeps its contents until perf_writer_begin(); messages
 * call it @name. @pipe_format: perf's pipe format, else a file. @compression_level: zstd's, for the
 * records; 0: none. The writer reads @signal_fd only while it waits: perf_writer_interrupted()
 * reports the first signal, the second drops what is not written. Returns 0 or a negative errno,
 * reported.
 */
int perf_writer_create(int fd, const char *name, bool pipe_format, int compression_level,
		       int signal_fd, struct perf_writer **ret);

/*
 * Copies what is added to @mirror, too, until that fails. Its failure ends the recording
 * (perf_writer_interrupted()), but is not a failure of @writer. Call it before perf_writer_begin().
 * Takes over @mirror.
 */
void perf_writer_mirror(struct perf_writer *writer, struct perf_writer *mirror);

/* True if recording has to end: a signal came while the writer waited, or the mirror failed. */
bool perf_writer_interrupted(const struct perf_writer *writer);

/*
 * Starts the writing thread and writes everything before the first record. Call it when no process
 * will be forked any more. Returns 0 or a negative errno, reported.
 */
int perf_writer_begin(struct perf_writer *writer, const struct record_events *events, int argc,
		      char *const *argv);

/*
 * Adds a record of at most 65535 bytes, in one or two parts. Returns 0, or the first failure's
 * negative errno, already reported.
 */
int perf_writer_add(struct perf_writer *writer, const char *bytes, size_t size, const char *more,
		    size_t more_size);

/* The same for a record in one part. */
static inline int perf_writer_add_record(struct perf_writer *writer,
					 const struct perf_event_header *record)
{
	return perf_writer_add(writer, (const char *)record, record->size, NULL, 0);
}

/*
 * Passes buffered records to the thread if it is idle and the last time was not just now. Call it
 * regularly, for live readers. Does not wait. Returns 0 or the first failure.
 */
int perf_writer_flush(struct perf_writer *writer);

/* The bytes written so far. */
uint64_t perf_writer_size_bytes(const struct perf_writer *writer);

/*
 * Completes the file. Returns 0 or the first failure, already reported. The file is readable in
 * either case.
 */
int perf_writer_finish(struct perf_writer *writer, const struct build_ids *build_ids);

/* Closes the output and frees the writer; NULL is fine. */
void perf_writer_destroy(struct perf_writer *writer);

#endif
