/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The descriptors of fork_follow: perf events, and the links of programs to them.
 *
 * Events that children inherit outlive their thread: closing one takes it from all that inherited
 * it. Such a thread has a witness, too, an event that counts nothing and is inherited like the
 * others. It shows when the thread and all its heirs have ended; all of them are closed then.
 */
#ifndef LEAKTOOLS_RECORDER_FOLLOW_FDS_H
#define LEAKTOOLS_RECORDER_FOLLOW_FDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct probe_file;

struct follow_fd {
	int fd;
	int witness;		       /* the thread's, if children inherit this event; or -1 */
	const struct probe_file *file; /* or NULL */
	pid_t tid;		       /* the carrier that has the event; or 0 */
	uint64_t opened_ns;
};

/* All zero: empty. */
struct follow_fds {
	struct follow_fd *all; /* those with a witness follow it */
	size_t nr;
	size_t nr_swept; /* how many the last sweep has left */
	int ring_fd;
	void *ring; /* NULL: there are no witnesses */
};

/*
 * Prepares for witnesses, while leakrec has the right to lock memory. Without that, inherited
 * events stay open. Release with follow_fds_close().
 */
void follow_fds_prepare(struct follow_fds *fds);
void follow_fds_close(struct follow_fds *fds);

/* Takes over @event->fd, also if it fails. Returns 0 or -ENOMEM. */
int follow_fds_add(struct follow_fds *fds, const struct follow_fd *event);

/*
 * Opens a witness for the thread, for the events that are added next. *@ret stays the table's; it
 * is -1 if there is none. Returns 0, -ESRCH if the thread has ended, or -ENOMEM.
 */
int follow_fds_add_witness(struct follow_fds *fds, pid_t tid, int *ret);

/* Closes those of @file. */
void follow_fds_close_file(struct follow_fds *fds, const struct probe_file *file);

/* Closes those of carrier @tid, which has ended at @time_ns. */
void follow_fds_close_carrier(struct follow_fds *fds, pid_t tid, uint64_t time_ns);

/* Closes those that came after the first @nr. */
void follow_fds_close_after(struct follow_fds *fds, size_t nr);

/* True if many were added since the last sweep. */
bool follow_fds_want_sweep(const struct follow_fds *fds);

/* Closes inherited events when the thread and all its heirs have ended. */
void follow_fds_sweep(struct follow_fds *fds);

#endif
