/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/segments/segment_keeper.h"

#include "common/clock.h"
#include "common/diag.h"
#include "common/elf/memory_file.h"
#include "common/output_file.h"
#include "common/quantity.h"
#include "common/scope.h"
#include "common/schema/segment_name.h"
#include "recorder/segments/segment_rights.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

struct segment_keeper {
	int dir_fd;
	char *dir;
	struct stat owner; /* of the directory */
	struct segment_limits limits;
	struct segment_name current;
	char *paths[2]; /* of the current segment, and of the one before or after: by its number */
	const char *head;
	size_t head_size;
	bool has_thread;
	pthread_t thread;
	struct ring_output *output; /* in memory; else NULL */
	int current_fd;		    /* in memory: of the current segment; else -1 */
	uint64_t began_ns;	    /* when the current segment did */
	bool told_span;
	bool made_first; /* the recording's first segment is ours */

	/* used by the thread once it runs */
	struct closed_segments closed;

	pthread_mutex_t lock; /* protects everything below */
	pthread_cond_t work;
	bool has_begun; /* what is beyond the limits is gone, or cannot be removed */
	bool wanted;	/* a segment is to be made, or waits to be taken or settled */
	bool to_make, to_settle, stop;
	int made_fd;   /* -1: none */
	int sync_fd;   /* the same file, for the thread */
	int closed_fd; /* of the segment before, when it is complete; -1 */
	uint64_t closed_began_ns;
	char *reason; /* to write what is complete; or NULL */
	int err;      /* the first failure */
};

/* --- The thread --- */

static int fail(struct segment_keeper *keeper, const char *what, const char *name, int err)
{
	diag_error("cannot %s %s/%s: %s", what, keeper->dir, name, strerror(-err));
	return err;
}

static int make_file(const struct segment_keeper *keeper, const char *name)
{
	int fd;

	if (keeper->output)
		return memory_file_create("leakrec-segment");
	fd = openat(keeper->dir_fd, name,
		    O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY, 0600);

	return fd < 0 ? -errno : fd;
}

/* Makes the segment after the current one, with its head. */
static int make_next(struct segment_keeper *keeper)
{
	char name[SEGMENT_NAME_BYTES];
	_cleanup_close_ int fd = -1;
	int copy, err;

	segment_name_format(
		(struct segment_name){keeper->current.recording, keeper->current.number + 1}, name);
	fd = make_file(keeper, name);
	if (fd < 0)
		return fail(keeper, "write", name, fd);
	err = output_write_all(fd, keeper->head, keeper->head_size);
	copy = err ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (!err && copy < 0)
		err = -errno;
	if (err) {
		if (!keeper->output)
			unlinkat(keeper->dir_fd, name, 0);
		return fail(keeper, "write", name, err);
	}
	pthread_mutex_lock(&keeper->lock);
	keeper->made_fd = steal_fd(fd);
	keeper->sync_fd = copy;
	pthread_mutex_unlock(&keeper->lock);
	return 0;
}

/* Has all complete segments written. Returns 0 or a negative errno. */
static int write_closed(struct segment_keeper *keeper, const char *reason)
{
	struct closed_segment *segments = closed_segments_copy(&keeper->closed);

	if (!segments)
		return -errno;
	ring_output_write(keeper->output, reason, segments, keeper->closed.nr, clock_now_ns());
	return 0;
}

/* The segment before is complete: writes all of them, if that was asked for. */
static int write_if_asked(struct segment_keeper *keeper)
{
	_cleanup_free_ char *reason = NULL;

	pthread_mutex_lock(&keeper->lock);
	reason = steal_ptr(keeper->reason);
	pthread_mutex_unlock(&keeper->lock);
	return reason ? write_closed(keeper, reason) : 0;
}

/* Writes a segment's state to the disk. */
static int sync_state(const struct segment_keeper *keeper, int fd)
{
	if (keeper->output || (fdatasync(fd) >= 0 && fsync(keeper->dir_fd) >= 0))
		return 0;
	return -errno;
}

/* The first time that memory is too little for the time it was to hold: says so. */
static void tell_span(struct segment_keeper *keeper)
{
	const struct closed_segments *closed = &keeper->closed;
	uint64_t age_ns = keeper->limits.age_ns, now_ns = clock_now_ns();

	if (!keeper->output || keeper->told_span || !age_ns || !closed->nr ||
	    closed->list[0].name.number == 1 || closed->list[0].began_ns + age_ns <= now_ns)
		return;
	keeper->told_span = true;
	diag_warn("%s have room for the last %s, not %s: give --ring a larger size",
		  quantity_bytes((double)keeper->limits.bytes).text,
		  quantity_duration((double)(now_ns - closed->list[0].began_ns) / 1e9).text,
		  quantity_duration((double)age_ns / 1e9).text);
}

static int drop_oldest(struct segment_keeper *keeper)
{
	int err = closed_segments_drop(&keeper->closed, &keeper->limits, keeper->dir_fd);

	return err ? fail(keeper, "remove", "the oldest segment", err) : 0;
}

/* The segment of descriptor @fd is complete. Returns 0 or a negative errno. */
static int add_closed(struct segment_keeper *keeper, struct closed_segment *segment, int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	segment->bytes = (uint64_t)st.st_size;
	return closed_segments_add(&keeper->closed, segment);
}

/* The current segment has its state: writes that to the disk, and removes what it replaces. */
static int settle(struct segment_keeper *keeper)
{
	_cleanup_close_ int sync_fd = keeper->sync_fd, closed_fd = keeper->closed_fd;
	struct closed_segment before = {
		.name = {keeper->current.recording, keeper->current.number - 1},
		.began_ns = keeper->closed_began_ns,
		.end_ns = (int64_t)keeper->began_ns, /* the current one did */
		.fd = keeper->output ? closed_fd : -1,
	};
	char name[SEGMENT_NAME_BYTES];
	int err;

	keeper->sync_fd = keeper->closed_fd = -1;
	segment_name_format(keeper->current, name);
	err = sync_state(keeper, sync_fd);
	if (err)
		return fail(keeper, "write", name, err);
	err = add_closed(keeper, &before, closed_fd);
	if (!err && keeper->output) {
		steal_fd(closed_fd);
		err = write_if_asked(keeper);
	}
	segment_name_format(before.name, name);
	if (err)
		return fail(keeper, "keep", name, err);
	err = drop_oldest(keeper);
	if (!err)
		tell_span(keeper);
	return err;
}

static void *run(void *arg)
{
	struct segment_keeper *keeper = arg;
	int first_err = segment_rights_take(
		&keeper->owner, keeper->output ? "the thread of --ring" : "the thread of --keep");

	/* Of earlier recordings. This one may end before it is cut, and so may all that follow. */
	if (!first_err)
		first_err = drop_oldest(keeper);
	pthread_mutex_lock(&keeper->lock);
	keeper->err = first_err;
	keeper->has_begun = true;
	pthread_cond_signal(&keeper->work);
	while (!first_err) {
		bool makes, settles;
		int err = 0;

		while (!keeper->to_make && !keeper->to_settle && !keeper->stop)
			pthread_cond_wait(&keeper->work, &keeper->lock);
		makes = keeper->to_make;
		settles = keeper->to_settle;
		keeper->to_make = keeper->to_settle = false;
		if (!makes && !settles)
			break;
		pthread_mutex_unlock(&keeper->lock);
		if (settles)
			err = settle(keeper);
		if (makes && !err)
			err = make_next(keeper);
		pthread_mutex_lock(&keeper->lock);
		if (err && !keeper->err)
			keeper->err = err;
		if (settles)
			keeper->wanted = false;
	}
	pthread_mutex_unlock(&keeper->lock);
	return NULL;
}

/* --- Its callers --- */

const char *segment_keeper_name(const struct segment_keeper *keeper)
{
	return keeper->paths[keeper->current.number % 2];
}

uint32_t segment_keeper_number(const struct segment_keeper *keeper)
{
	return keeper->current.number;
}

/* Sets the path of the segment of that number. Returns 0 or -ENOMEM. */
static int set_path(struct segment_keeper *keeper, struct segment_name segment)
{
	char name[SEGMENT_NAME_BYTES], *path;

	segment_name_format(segment, name);
	if ((keeper->output ? asprintf(&path, "segment %s in memory", name)
			    : asprintf(&path, "%s/%s", keeper->dir, name)) < 0)
		return -ENOMEM;
	free(keeper->paths[segment.number % 2]);
	keeper->paths[segment.number % 2] = path;
	return 0;
}

/* Opens and locks the directory. Returns 0 or a negative errno, reported. */
static int open_dir(struct segment_keeper *keeper)
{
	int err;

	keeper->dir_fd = output_dir_open(keeper->dir);
	if (keeper->dir_fd < 0)
		return keeper->dir_fd;
	if (flock(keeper->dir_fd, LOCK_EX | LOCK_NB) < 0) {
		err = -errno;
		diag_error("cannot write into %s: %s", keeper->dir,
			   err == -EWOULDBLOCK ? "another leakrec is writing there"
					       : strerror(-err));
		return err;
	}
	err = fstat(keeper->dir_fd, &keeper->owner) < 0 ? -errno : 0;
	if (!err && keeper->limits.in_memory) {
		keeper->output = ring_output_create(keeper->dir_fd, keeper->dir, &keeper->owner);
		err = keeper->output ? 0 : -ENOMEM;
	} else if (!err) {
		err = closed_segments_list(&keeper->closed, keeper->dir_fd,
					   &keeper->current.recording);
	}
	if (err == -ERANGE)
		diag_error("cannot write into %s: the number of its last recording is the largest "
			   "one; name another directory",
			   keeper->dir);
	else if (err)
		diag_error("cannot read %s: %s", keeper->dir, strerror(-err));
	return err;
}

/*
 * Returns -ENOSPC if the disk is full. What is beyond the limits goes before anything is written
 * (segment_keeper_start()).
 */
static int check_room(struct segment_keeper *keeper)
{
	return keeper->output
		       ? 0
		       : output_check_room(keeper->dir_fd, closed_segments_beyond(&keeper->closed,
										  &keeper->limits));
}

/* Makes the first segment, empty. */
static int make_first(struct segment_keeper *keeper, int *ret_fd)
{
	int err = check_room(keeper), fd;
	char name[SEGMENT_NAME_BYTES];

	segment_name_format(keeper->current, name);
	fd = err ? err : make_file(keeper, name);
	if (fd < 0)
		return fail(keeper, "write", name, fd);
	keeper->made_first = true;
	if (keeper->output) {
		keeper->current_fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
		keeper->began_ns = clock_now_ns();
		if (keeper->current_fd < 0) {
			close(fd);
			return fail(keeper, "write", name, -errno);
		}
	} else if (keeper->owner.st_uid != geteuid() &&
		   fchown(fd, keeper->owner.st_uid, keeper->owner.st_gid) < 0)
		diag_warn("%s/%s still belongs to root: %s", keeper->dir, name, strerror(errno));
	*ret_fd = fd;
	return 0;
}

int segment_keeper_create(const char *path, const struct segment_limits *limits,
			  struct segment_keeper **ret, int *ret_fd)
{
	struct segment_keeper *keeper = calloc(1, sizeof(*keeper));
	int err = 0;

	if (keeper) {
		keeper->dir_fd = keeper->made_fd = keeper->sync_fd = keeper->closed_fd = -1;
		keeper->current_fd = -1;
		keeper->limits = *limits;
		keeper->current = (struct segment_name){1, 1};
		pthread_mutex_init(&keeper->lock, NULL);
		pthread_cond_init(&keeper->work, NULL);
		keeper->dir = strdup(path);
	}
	if (!keeper || !keeper->dir) {
		diag_error("cannot write into %s: out of memory", path);
		err = -ENOMEM;
	}
	if (!err)
		err = open_dir(keeper);
	if (!err && set_path(keeper, keeper->current))
		err = fail(keeper, "write", "the first segment", -ENOMEM);
	if (!err)
		err = make_first(keeper, ret_fd);
	if (!err)
		*ret = keeper;
	else
		segment_keeper_destroy(keeper);
	return err;
}

int segment_keeper_start(struct segment_keeper *keeper)
{
	int err = segment_rights_start_thread(&keeper->thread, run, keeper);

	keeper->has_thread = !err;
	if (err) {
		diag_error("cannot start a thread to make files in %s: %s", keeper->dir,
			   strerror(-err));
		return err;
	}
	pthread_mutex_lock(&keeper->lock);
	while (!keeper->has_begun)
		pthread_cond_wait(&keeper->work, &keeper->lock);
	err = keeper->err;
	pthread_mutex_unlock(&keeper->lock);
	return err || !keeper->output ? err : ring_output_start(keeper->output);
}

void segment_keeper_set_head(struct segment_keeper *keeper, const char *head, size_t size)
{
	keeper->head = head;
	keeper->head_size = size;
}

/* Removes the first segment, if it is empty or @anyway. */
static void remove_first(const struct segment_keeper *keeper, bool anyway)
{
	char name[SEGMENT_NAME_BYTES];
	struct stat st;

	if (!keeper->made_first || keeper->current.number != 1 || keeper->output)
		return;
	segment_name_format(keeper->current, name);
	if (fstatat(keeper->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
	    (!st.st_size || anyway))
		unlinkat(keeper->dir_fd, name, 0);
}

/* Removes the next segment, if it was made and not taken: it is no part of the recording. */
static void remove_next(const struct segment_keeper *keeper)
{
	char name[SEGMENT_NAME_BYTES];

	if (keeper->made_fd < 0 || keeper->output)
		return;
	segment_name_format(
		(struct segment_name){keeper->current.recording, keeper->current.number + 1}, name);
	unlinkat(keeper->dir_fd, name, 0);
}

void segment_keeper_drop_first(struct segment_keeper *keeper)
{
	remove_first(keeper, true);
}

void segment_keeper_end(struct segment_keeper *keeper)
{
	pthread_mutex_lock(&keeper->lock);
	keeper->stop = true;
	pthread_cond_signal(&keeper->work);
	pthread_mutex_unlock(&keeper->lock);
	if (keeper->has_thread)
		pthread_join(keeper->thread, NULL);
	keeper->has_thread = false;
}

void segment_keeper_destroy(struct segment_keeper *keeper)
{
	if (!keeper)
		return;
	segment_keeper_end(keeper);
	ring_output_destroy(keeper->output);
	remove_first(keeper, false);
	remove_next(keeper);
	for (size_t i = 0; i < ARRAY_SIZE(keeper->paths); i++)
		free(keeper->paths[i]);
	const int fds[] = {keeper->made_fd, keeper->sync_fd, keeper->closed_fd, keeper->dir_fd,
			   keeper->current_fd};
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		if (fds[i] >= 0)
			close(fds[i]);
	pthread_cond_destroy(&keeper->work);
	pthread_mutex_destroy(&keeper->lock);
	closed_segments_deinit(&keeper->closed);
	free(keeper->reason);
	free(keeper->dir);
	free(keeper);
}

void segment_keeper_want(struct segment_keeper *keeper)
{
	pthread_mutex_lock(&keeper->lock);
	if (!keeper->wanted) {
		keeper->wanted = keeper->to_make = true;
		pthread_cond_signal(&keeper->work);
	}
	pthread_mutex_unlock(&keeper->lock);
}

/* The segment that was made, of descriptor @fd, becomes the current one. Returns 0 or an error. */
static int become_current(struct segment_keeper *keeper, int fd)
{
	struct segment_name next = keeper->current;
	int copy;

	next.number++;
	if (set_path(keeper, next))
		return fail(keeper, "write", "the next segment", -ENOMEM);
	if (keeper->output) {
		copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
		if (copy < 0)
			return fail(keeper, "write", "the next segment", -errno);
		close(keeper->current_fd);
		keeper->current_fd = copy;
	}
	keeper->closed_began_ns = keeper->began_ns;
	keeper->began_ns = clock_now_ns();
	keeper->current = next;
	return 0;
}

int segment_keeper_take(struct segment_keeper *keeper)
{
	int fd, err;

	pthread_mutex_lock(&keeper->lock);
	fd = keeper->err ? keeper->err : keeper->made_fd < 0 ? -EAGAIN : keeper->made_fd;
	if (fd >= 0) {
		err = become_current(keeper, fd);
		if (err)
			fd = err;
		else
			keeper->made_fd = -1;
	}
	pthread_mutex_unlock(&keeper->lock);
	return fd;
}

void segment_keeper_complete(struct segment_keeper *keeper, int fd)
{
	pthread_mutex_lock(&keeper->lock);
	keeper->closed_fd = fd;
	pthread_mutex_unlock(&keeper->lock);
}

void segment_keeper_settle(struct segment_keeper *keeper)
{
	pthread_mutex_lock(&keeper->lock);
	/* After a failure to write, there is no segment before. */
	if (keeper->closed_fd >= 0) {
		keeper->to_settle = true;
		pthread_cond_signal(&keeper->work);
	}
	pthread_mutex_unlock(&keeper->lock);
}

int segment_keeper_write(struct segment_keeper *keeper, const char *reason)
{
	char *copy = strdup(reason);

	if (!copy)
		return fail(keeper, "write the segments into", ".", -ENOMEM);
	pthread_mutex_lock(&keeper->lock);
	free(keeper->reason);
	keeper->reason = copy;
	pthread_mutex_unlock(&keeper->lock);
	return 0;
}

bool segment_keeper_is_writing(const struct segment_keeper *keeper)
{
	return ring_output_is_busy(keeper->output);
}

int segment_keeper_write_last(struct segment_keeper *keeper, const char *reason)
{
	struct closed_segment last = {
		.name = keeper->current,
		.began_ns = keeper->began_ns,
		.end_ns = (int64_t)clock_now_ns(),
		.fd = keeper->current_fd,
	};
	int err = add_closed(keeper, &last, keeper->current_fd);

	if (!err) {
		keeper->current_fd = -1;
		err = write_closed(keeper, reason);
	}
	return err ? fail(keeper, "write the segments into", ".", err) : 0;
}

uint64_t segment_keeper_began_ns(const struct segment_keeper *keeper)
{
	return keeper->closed.nr ? keeper->closed.list[0].began_ns : keeper->began_ns;
}

struct ring_written segment_keeper_written(const struct segment_keeper *keeper)
{
	return ring_output_written(keeper->output);
}

void segment_keeper_abandon(struct segment_keeper *keeper)
{
	ring_output_abandon(keeper->output);
}
