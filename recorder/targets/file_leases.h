/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Notices that somebody is about to overwrite a probed file, before the first byte changes. The
 * kernel puts breakpoints at the old offsets into processes that map the new content, and keeps
 * the old copies of the instructions (UPROBE_COPY_INSN, kernel/events/uprobes.c), so these
 * processes would crash.
 *
 * A read lease (fcntl(2)) on each file makes an open() for writing wait until the lease is given
 * back, 45 seconds at most (/proc/sys/fs/lease-break-time). Meanwhile the recorder removes the
 * file's probes. When the recorder has ended, the kernel gives the leases back.
 */
#ifndef LEAKTOOLS_RECORDER_FILE_LEASES_H
#define LEAKTOOLS_RECORDER_FILE_LEASES_H

#include "probes/plan/probe_set.h"

struct file_leases {
	int fd;			   /* readable when somebody opens one of the files for writing */
	bool is_wanted;		   /* a signal has come: look at all files */
	struct probe_file **files; /* with a lease each; the caller's */
	size_t nr_files;
};

/*
 * Call it before another thread exists: blocks SIGIO, which the kernel sends. Returns 0 or a
 * negative errno, reported. Release with file_leases_deinit().
 */
int file_leases_init(struct file_leases *ret);

/* Frees the memory. The leases last as long as the files are open. */
void file_leases_deinit(struct file_leases *leases);

/*
 * Takes a lease on @file, which must not move. Returns 0 or a negative errno, not reported: -EAGAIN
 * if somebody has it open for writing, or if the server of NFS or SMB has not promised to tell,
 * -EINVAL if its file system has no leases, -EACCES without CAP_LEASE if it is another user's,
 * -ESTALE if it has changed since it was analysed.
 *
 * No leases: NFS before version 4, Ceph, 9P; from Linux 7.0 on also each file system that does not
 * say that it has some (kernel_setlease(), fs/locks.c).
 */
int file_leases_take(struct file_leases *leases, struct probe_file *file);

/* The reason for the error @err, as a clause. */
const char *file_leases_reason(int err);

/* Warns that @file is recorded without a lease, because of @err. */
void file_leases_warn(const struct probe_file *file, int err);

/*
 * Takes leases on all files of @set. It warns of files that cannot be watched, and returns 0,
 * -ENOMEM, or -ESTALE, reported. With @nr_given_up, it counts files that have changed since they
 * were analysed, and gives them up, with a warning each: a removed file has changed, too, and among
 * all that processes map, some may be.
 */
int file_leases_take_all(struct file_leases *leases, struct probe_set *set, size_t *nr_given_up);

/*
 * Returns a file that somebody waits to open for writing, or has opened because the time was up;
 * NULL if there is none. Give it back before the next call.
 */
struct probe_file *file_leases_next_wanted(struct file_leases *leases);

/* Gives the lease on @file back, if there is one: a writer may go on. */
void file_leases_give(struct file_leases *leases, const struct probe_file *file);

#endif
