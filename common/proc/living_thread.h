/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A thread whose entry in /proc shows the memory and the files of its process. /proc/PID shows what
 * its first thread has, which is nothing once that has ended, though other threads live on. The
 * entry /proc/TID of another thread is not listed, but has the same files. Reports nothing.
 */
#ifndef LEAKTOOLS_COMMON_LIVING_THREAD_H
#define LEAKTOOLS_COMMON_LIVING_THREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/*
 * Returns @pid, or another thread of it if the first has no memory any more; @pid also if none has.
 * It may end at once: then read again. Safe in signal handlers.
 */
pid_t living_thread(pid_t pid);

/*
 * Stores the first @max threads of @pid, by age, that have not begun to end. Returns how many there
 * are.
 */
size_t living_threads_lasting(pid_t pid, pid_t *ret, size_t max);

/* True if the thread @tid has begun to end, though it may still have memory. */
bool living_thread_is_ending(pid_t tid);

/* As living_thread(), below @proc_fd, an open directory /proc/PID; 0 if no thread has memory. */
pid_t living_thread_at(int proc_fd);

/* True if the thread @tid has memory. */
bool living_thread_has_memory(pid_t tid);

#endif
