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
 * Copies what is added to @mirror, too, until that fails. Its failure is not one of @writer, and
 * ends the recording (perf_writer_interrupted()) if @is_needed. Call it before perf_writer_begin().
 * Takes over @mirror.
 */
void perf_writer_mirror(struct perf_writer *writer, struct perf_writer *mirror, bool is_needed);

/*
 * The writer never waits for what reads the pipe. Samples for which there is no room are left out,
 * and counted in *@left_out, which other processes may read. Call it before perf_writer_begin().
 */
void perf_writer_never_wait(struct perf_writer *writer, uint64_t *left_out);

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

/* The same for a side record (record_events.h), of which perf_writer_watch_side() is told, too. */
int perf_writer_add_side(struct perf_writer *writer, const struct perf_event_header *record);
void perf_writer_watch_side(struct perf_writer *writer,
			    void (*note)(void *context, const struct perf_event_header *record),
			    void *context);

/* The same for a sample of a probe, which a writer that never waits may leave out. */
int perf_writer_add_sample(struct perf_writer *writer, const struct perf_event_header *record);

/*
 * Passes buffered records to the thread if it is idle and the last time was not just now. Call it
 * regularly, for live readers. Does not wait. Returns 0 or the first failure.
 */
int perf_writer_flush(struct perf_writer *writer);

/*
 * Call it before perf_writer_begin() of a file if other files are to follow, with the same bytes
 * before their first record: perf_writer_head() of them, valid as long as the writer.
 */
void perf_writer_keep_head(struct perf_writer *writer);
const char *perf_writer_head(const struct perf_writer *writer, size_t *ret_size);

/* A file to go on with. */
struct perf_next_output {
	int fd;		  /* of a file that has perf_writer_head(), at its end; taken over */
	const char *name; /* for messages; valid until another one follows, or the writer ends */
	/* The writing thread calls it when the old file is complete, and passes it on. */
	void (*done)(void *context, int old_fd);
	void *context;
};

/*
 * What is added from here on goes to @next, and the old file is completed. Call it when the former
 * change is done. Returns 0 or a negative errno, reported.
 */
int perf_writer_change(struct perf_writer *writer, const struct perf_next_output *next,
		       const struct build_ids *build_ids);

/* The first failure to write, a negative errno, or 0. */
int perf_writer_error(const struct perf_writer *writer);

/* The writing thread calls @call after what was added so far. Returns 0 or the first failure. */
int perf_writer_call(struct perf_writer *writer, void (*call)(void *context), void *context);

/* The bytes written so far, of files that follow each other those of all. */
uint64_t perf_writer_size_bytes(const struct perf_writer *writer);

/*
 * Completes the file. Returns 0 or the first failure, already reported. The file is readable in
 * either case.
 */
int perf_writer_finish(struct perf_writer *writer, const struct build_ids *build_ids);

/* Closes the output and frees the writer; NULL is fine. */
void perf_writer_destroy(struct perf_writer *writer);

#endif
