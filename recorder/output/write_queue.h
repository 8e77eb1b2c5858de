/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A thread that compresses and writes, so that draining the rings does not wait for a disk or for a
 * pipe's reader. Records are gathered in at most WRITE_QUEUE_BUFFERS buffers. When all are full,
 * adding waits for the thread. So a slow output slows down the recorded processes, and memory does
 * not grow. A queue that never waits (write_queue_never_wait()) leaves out what it has no room for.
 *
 * One thread adds, and calls all functions here. It reads the signals that end a recording, but
 * only while it waits here; at other times they are left to the caller.
 *
 * The writing thread blocks all signals and has no capabilities. Its first failure is reported;
 * what is added after that is dropped.
 */
#ifndef LEAKTOOLS_RECORDER_WRITE_QUEUE_H
#define LEAKTOOLS_RECORDER_WRITE_QUEUE_H

#include "recorder/output/compressor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WRITE_QUEUE_BUFFER_BYTES ((size_t)1 << 20)
#define WRITE_QUEUE_BUFFERS	 16
/* Of a queue that never waits: for what may be left out, and more for what may not. */
#define WRITE_QUEUE_LIVE_BUFFERS 64
#define WRITE_QUEUE_MORE_BUFFERS 16

struct write_queue;

/*
 * Starts the thread. The caller keeps @fd, which may be non-blocking, and @signal_fd. Messages call
 * the output @name. Takes over @compressor, which may be NULL, also on failure. While the queue
 * waits, the first signal sets write_queue_interrupted(). A second one, or a pipe's reader that
 * reads nothing for 0.7 s, drops what is not written (EINTR). Returns 0 or a negative errno,
 * reported.
 */
int write_queue_create(int fd, const char *name, int signal_fd, struct compressor *compressor,
		       struct write_queue **ret);

/*
 * From now on, adding never waits. If more than WRITE_QUEUE_LIVE_BUFFERS buffers are not written,
 * write_queue_offer() refuses; if WRITE_QUEUE_MORE_BUFFERS more are, the queue fails with EAGAIN.
 * Draining gives up if the reader takes nothing for ten seconds.
 */
void write_queue_never_wait(struct write_queue *queue);

/*
 * Ends the thread and drops what is not written. A thread that cannot be woken (writing to a
 * blocking pipe without a reader) is left until the process ends. NULL is fine.
 */
void write_queue_destroy(struct write_queue *queue);

/*
 * Returns contiguous room for @size_bytes more, at most UINT16_MAX, to be filled before the next
 * call; NULL after a failure. If it is compressed, it must be one record, or several that stay
 * together.
 */
char *write_queue_reserve(struct write_queue *queue, size_t size_bytes);

/* The same for what may be left out; also NULL, without a failure, if the queue never waits and the
 * output is too far behind. */
char *write_queue_offer(struct write_queue *queue, size_t size_bytes);

/* Adds any number of bytes. Returns 0 or the first failure. */
int write_queue_add(struct write_queue *queue, const char *bytes, size_t size_bytes);

/* Turns compression of what is added next on or off; compressed bytes must be records. */
void write_queue_set_compressed(struct write_queue *queue, bool compressed);

/*
 * Passes what was added to the thread if that is idle; otherwise a later call or a full buffer
 * does. Does not wait. Returns 0 or the first failure.
 */
int write_queue_flush(struct write_queue *queue);

/*
 * Waits until everything is written, or writing has failed. The thread is then idle until more is
 * added, except after a failure to write to a pipe. Returns 0 or the first failure.
 */
int write_queue_drain(struct write_queue *queue);

/*
 * The thread calls @call after it has written all that was added before, and before anything that
 * is added later; also after a failure, but not if the queue is destroyed first. Returns 0 or the
 * first failure.
 */
int write_queue_call(struct write_queue *queue, void (*call)(void *context), void *context);

/*
 * In such a call: from here on, writes to @fd, a regular file, as write_queue_create() says of it.
 * Releases the old compressor; @compressor must be NULL if that was.
 */
void write_queue_set_output(struct write_queue *queue, int fd, const char *name,
			    struct compressor *compressor);

/* The bytes written so far, to all outputs. */
uint64_t write_queue_written(const struct write_queue *queue);

/* 0, or the first failure: a negative errno. */
int write_queue_error(const struct write_queue *queue);

/* True if a signal came while the queue waited. */
bool write_queue_interrupted(const struct write_queue *queue);

#endif
