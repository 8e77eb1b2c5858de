/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Threads that write into a directory with the rights of its owner, whoever records. */
#ifndef LEAKTOOLS_RECORDER_SEGMENT_RIGHTS_H
#define LEAKTOOLS_RECORDER_SEGMENT_RIGHTS_H

#include <pthread.h>
#include <sys/stat.h>

/* Starts a thread that gets no signals. Returns 0 or a negative errno. */
int segment_rights_start_thread(pthread_t *ret, void *(*run)(void *), void *arg);

/*
 * In the thread, which is @who: takes the owner's rights in file systems, and no capabilities.
 * Returns 0, or -EPERM, reported: it would write with root's.
 */
int segment_rights_take(const struct stat *owner, const char *who);

#endif
