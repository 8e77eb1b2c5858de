/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Writes a recording: a perf.data file, or perf's pipe format when the output cannot seek or is
 * "-".
 *
 * File layout. perf finds the table of feature sections behind the data, the sections themselves
 * may lie anywhere. All but the build-ids are known when recording starts, so they are written
 * first:
 *
 *   header | ids | attributes | sections | table, provisional | data | table | build-ids
 *
 * Until perf_writer_finish() the header says that the data is empty and starts at the provisional
 * table, which is where perf then looks for the table: a file whose recorder was killed still tells
 * its attributes and formats, and its data lies behind the provisional table (docs/perf-data.md).
 *
 * A thread of its own writes (recorder/output/write_queue.h): what is added is written, and fails,
 * later. When the output is too slow for what its buffers hold, adding waits. A failed write is
 * reported once; the records after it are dropped, and perf_writer_finish() keeps all records that
 * were written whole.
 */
#ifndef LEAKTOOLS_RECORDER_PERF_WRITER_H
#define LEAKTOOLS_RECORDER_PERF_WRITER_H

#include "recorder/output/build_ids.h"
#include "recorder/events/record_events.h"

#include <stdbool.h>
#include <stdint.h>

struct perf_writer;

/*
 * Takes over @fd, a pipe, or a file, which keeps what it has until perf_writer_begin(); @name
 * stands for it in messages. @pipe_format: perf's pipe format, else a file. @compression_level:
 * zstd's, of the records; 0: none. @signal_fd is read while there is something to wait for only:
 * the first signal is told by perf_writer_interrupted(), the second drops what is not written.
 * Returns 0 or a negative errno, reported.
 */
int perf_writer_create(int fd, const char *name, bool pipe_format, int compression_level,
		       int signal_fd, struct perf_writer **ret);

/*
 * What is added from here on @mirror gets, too, until that fails. That ends the recording
 * (perf_writer_interrupted()), but is no failure of @writer's. Before perf_writer_begin(); @mirror
 * is taken over.
 */
void perf_writer_mirror(struct perf_writer *writer, struct perf_writer *mirror);

/*
 * True if a signal came while the writer waited for its output, or the mirror has failed: recording
 * is to end.
 */
bool perf_writer_interrupted(const struct perf_writer *writer);

/*
 * Starts the thread that writes, and gives it all that stands before the first record. To be called
 * once nothing is forked any more. Returns 0 or a negative errno, reported.
 */
int perf_writer_begin(struct perf_writer *writer, const struct record_events *events, int argc,
		      char *const *argv);

/*
 * Adds a record, given in one or two parts, of 65535 bytes at most. Returns 0, or a negative errno
 * (reported when it first happened).
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
 * Hands what is buffered to the thread, if it has nothing else to begin with and that was not just
 * now: to be called again and again, for a live reader's sake. Does not wait. Returns 0 or the
 * first failure.
 */
int perf_writer_flush(struct perf_writer *writer);

/* The bytes given to the kernel so far. */
uint64_t perf_writer_size_bytes(const struct perf_writer *writer);

/*
 * Completes the file. Returns 0, or the first error of the writer's life (reported when it
 * happened); the file is readable in either case.
 */
int perf_writer_finish(struct perf_writer *writer, const struct build_ids *build_ids);

/* Closes the output and frees the writer; NULL is fine. */
void perf_writer_destroy(struct perf_writer *writer);

#endif
