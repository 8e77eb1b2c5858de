/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A thread that compresses and writes, so that draining the rings does not wait for a disk or for a
 * pipe's reader. Records are gathered in at most WRITE_QUEUE_BUFFERS buffers. When all are full,
 * adding waits for the thread. So a slow output slows down the recorded processes, and memory does
 * not grow.
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

struct write_queue;

/*
 * Starts the thread. @fd, which may be non-blocking, and @signal_fd stay the caller's; @name stands
 * for the output in messages. @compressor, which may be NULL, is taken over, also by a failure.
 * While the queue waits, the first signal sets write_queue_interrupted(); a second, or a pipe's
 * reader that takes nothing for 0.7 s, gives up what is not written (EINTR). Returns 0 or a
 * negative errno, reported.
 */
int write_queue_create(int fd, const char *name, int signal_fd, struct compressor *compressor,
		       struct write_queue **ret);

/*
 * Ends the thread; what is not written is dropped. A thread that cannot be woken (a blocking pipe
 * that nobody reads) is left behind, for the end of the process. NULL is fine.
 */
void write_queue_destroy(struct write_queue *queue);

/*
 * Room for @size_bytes more, at most UINT16_MAX, in one piece, to be filled before the next call.
 * NULL after a failure.
 */
char *write_queue_reserve(struct write_queue *queue, size_t size_bytes);

/* Adds any number of bytes. Returns 0 or the first failure. */
int write_queue_add(struct write_queue *queue, const char *bytes, size_t size_bytes);

/* Whether what follows, records only, is compressed. At first it is not. */
void write_queue_set_compressed(struct write_queue *queue, bool compressed);

/*
 * Hands to the thread what was added, unless it is behind: then it gets that with a later call, or
 * with a full buffer. Does not wait. Returns 0 or the first failure.
 */
int write_queue_flush(struct write_queue *queue);

/*
 * Waits until all is written, or writing has failed. Then the thread does nothing until more is
 * added, if the output is a regular file or all went well. Returns 0 or the first failure.
 */
int write_queue_drain(struct write_queue *queue);

/* The bytes that the kernel has taken. */
uint64_t write_queue_written(const struct write_queue *queue);

/* 0, or the first failure: a negative errno. */
int write_queue_error(const struct write_queue *queue);

/* True if a signal came while the queue waited. */
bool write_queue_interrupted(const struct write_queue *queue);

#endif
