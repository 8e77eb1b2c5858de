/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads the memory of processes, which decide how long that takes: what is not in memory may have
 * to come from a file's server (FUSE) or a handler (userfaultfd), which answer when they like.
 * Until then not even SIGKILL may end the wait (request_wait_answer(), fs/fuse/dev.c, Linux 6.18).
 * So only what is in memory is read. But a process can remove it just after the check. So another
 * thread reads, which is left behind if it takes too long.
 */
#ifndef LEAKTOOLS_RECORDER_MEMORY_READER_H
#define LEAKTOOLS_RECORDER_MEMORY_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* --- The thread --- */

struct read_thread;

/*
 * Starts a thread without descriptors of its own or of this process: left behind, it must not keep
 * a probe. Keep it: the kernel copies the first 64 descriptors for it, which are closed then. At
 * such a close, NFS waits until the server has what was written. Returns NULL if there can be none.
 */
struct read_thread *read_thread_create(void);

/*
 * Ends the thread. Returns false if it is not done, so that it still uses its argument, and is left
 * behind. NULL is fine.
 */
bool read_thread_destroy(struct read_thread *thread);

/* Runs @function with @argument in the thread, which has to be done with the last one. */
void read_thread_begin(struct read_thread *thread, void (*function)(void *argument),
		       void *argument);

/* Waits until it is done, at most @limit_ns. Returns false if it is not. */
bool read_thread_wait(struct read_thread *thread, uint64_t limit_ns);

/* --- What it does --- */

/* Initialize with {0}. */
struct memory_reader {
	pid_t pid;		/* 0: none yet */
	int pagemap, maps, mem; /* @maps, @mem: or a negative number */
};

/* Why something is not in memory. */
enum memory_absence {
	MEMORY_ELSEWHERE, /* swapped out, in a file, or unknown */
	MEMORY_ZERO,	  /* nothing was ever written there */
	MEMORY_UNMAPPED,
};

/* Goes to process @pid. Returns 0 or a negative errno, not reported. */
int memory_reader_open(struct memory_reader *reader, pid_t pid);
void memory_reader_close(struct memory_reader *reader);

/*
 * Reads those of the @bytes at @address that come before the first one that is not in memory.
 * Returns how many, or a negative errno, not reported.
 */
ssize_t memory_reader_read(const struct memory_reader *reader, uint64_t address, void *to,
			   size_t bytes);

/* Needs Linux 6.11; before that, MEMORY_ELSEWHERE. */
enum memory_absence memory_reader_absence(const struct memory_reader *reader, uint64_t address);

#endif
