/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/segments/ring_output.h"

#include "common/clock.h"
#include "common/diag.h"
#include "common/quantity.h"
#include "common/scope.h"
#include "recorder/segments/segment_rights.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <time.h>
#include <unistd.h>

#define MAX_SAME_NAMES 100 /* of one second and one reason */
#define COPY_BYTES     ((size_t)1 << 20)
#define REASON_BYTES   64
#define NAME_BYTES     (REASON_BYTES + 32)
#define PART_SUFFIX    ".part"

struct ring_output {
	int dir_fd;
	const char *dir;
	struct stat owner;
	bool has_thread;
	pthread_t thread;
	atomic_bool abandoned;
	int rights_err; /* the thread's: it may not write */

	/* the order, for the thread while @busy */
	char reason[REASON_BYTES];
	struct closed_segment *segments;
	size_t nr;
	uint64_t until_ns;

	pthread_mutex_t lock; /* protects everything below */
	pthread_cond_t work;
	bool busy, stop;
	struct ring_written written;
};

/* --- The thread --- */

/* Copies the whole file, which nobody changes. Returns 0 or a negative errno. */
static int copy(struct ring_output *output, int to, const struct closed_segment *from)
{
	off_t at = 0;

	while ((uint64_t)at < from->bytes) {
		ssize_t nr;

		if (atomic_load(&output->abandoned))
			return -EINTR;
		nr = sendfile(to, from->fd, &at, COPY_BYTES);
		if (nr < 0 && errno != EINTR)
			return -errno;
		if (nr == 0)
			return -EIO;
	}
	return fdatasync(to) < 0 ? -errno : 0;
}

static int write_segment(struct ring_output *output, int dir_fd,
			 const struct closed_segment *segment)
{
	char name[SEGMENT_NAME_BYTES], part[SEGMENT_NAME_BYTES + sizeof(PART_SUFFIX)];
	_cleanup_close_ int fd = -1;
	int err;

	segment_name_format(segment->name, name);
	snprintf(part, sizeof(part), "%s" PART_SUFFIX, name);
	fd = openat(dir_fd, part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY,
		    0600);
	if (fd < 0)
		return -errno;
	err = copy(output, fd, segment);
	if (!err && renameat(dir_fd, part, dir_fd, name) < 0)
		err = -errno;
	if (err)
		unlinkat(dir_fd, part, 0);
	return err;
}

/* Makes the directory, with its name in @ret_name. Returns its descriptor or a negative errno. */
static int make_directory(const struct ring_output *output, char ret_name[NAME_BYTES])
{
	uint64_t ago_ns = clock_now_ns() - output->until_ns;
	time_t seconds = (time_t)((clock_ns(CLOCK_REALTIME) - ago_ns) / 1000000000);
	char when[32], reason[REASON_BYTES];
	struct tm utc;
	int fd;

	gmtime_r(&seconds, &utc);
	strftime(when, sizeof(when), "%Y%m%dT%H%M%SZ", &utc);
	snprintf(reason, sizeof(reason), "%s", output->reason);
	for (char *at = reason; (at = strchr(at, '/'));)
		*at = '-';
	for (int i = 1; i < MAX_SAME_NAMES; i++) {
		int len = snprintf(ret_name, NAME_BYTES, "%s.%s", when, reason);

		if (i > 1)
			snprintf(ret_name + len, NAME_BYTES - (size_t)len, ".%d", i);
		if (mkdirat(output->dir_fd, ret_name, 0700) == 0)
			break;
		if (errno != EEXIST)
			return -errno;
	}
	fd = openat(output->dir_fd, ret_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	return fd < 0 ? -errno : fd;
}

/* How long it was from the beginning of the first of @nr segments at the end of the list. */
static double seconds_of(const struct ring_output *output, size_t nr)
{
	uint64_t began_ns = nr ? output->segments[output->nr - nr].began_ns : output->until_ns;

	return began_ns < output->until_ns ? (double)(output->until_ns - began_ns) / 1e9 : 0;
}

static void report(const struct ring_output *output, const char *name, size_t nr, uint64_t bytes,
		   int err)
{
	if (!err)
		diag_note("wrote the last %s, %s, because of %s: %s/%s",
			  quantity_duration(seconds_of(output, nr)).text,
			  quantity_bytes((double)bytes).text, output->reason, output->dir, name);
	else
		diag_error("cannot write the last %s into %s/%s: %s; %s",
			   quantity_duration(seconds_of(output, output->nr)).text, output->dir,
			   name, err == -EINTR ? "a signal came" : strerror(-err),
			   nr ? "its newest part is there" : "nothing is there");
}

/* Does what it was told. Returns what that adds to what was written. */
static struct ring_written write_all(struct ring_output *output)
{
	char name[NAME_BYTES] = "";
	_cleanup_close_ int fd =
		output->rights_err ? output->rights_err : make_directory(output, name);
	struct ring_written done = {0};
	int err = fd < 0 ? fd : 0;
	size_t nr = 0;

	while (!err && nr < output->nr) {
		const struct closed_segment *segment = &output->segments[output->nr - 1 - nr];

		err = write_segment(output, fd, segment);
		if (!err) {
			done.bytes += segment->bytes;
			nr++;
		}
	}
	if (!err && (fsync(fd) < 0 || fsync(output->dir_fd) < 0))
		err = -errno;
	if (!nr && fd >= 0)
		unlinkat(output->dir_fd, name, AT_REMOVEDIR);
	report(output, name, nr, done.bytes, err);
	done.nr = !err;
	done.nr_failed = !!err;
	done.until_ns = nr ? output->until_ns : 0;
	return done;
}

static void forget(struct ring_output *output)
{
	for (size_t i = 0; i < output->nr; i++)
		close(output->segments[i].fd);
	free(output->segments);
	output->segments = NULL;
	output->nr = 0;
}

static void *run(void *arg)
{
	struct ring_output *output = arg;

	output->rights_err = segment_rights_take(&output->owner, "the thread of --ring");
	pthread_mutex_lock(&output->lock);
	for (;;) {
		struct ring_written done;

		while (!output->busy && !output->stop)
			pthread_cond_wait(&output->work, &output->lock);
		if (!output->busy)
			break;
		pthread_mutex_unlock(&output->lock);
		done = write_all(output);
		forget(output);
		pthread_mutex_lock(&output->lock);
		output->written.nr += done.nr;
		output->written.nr_failed += done.nr_failed;
		output->written.bytes += done.bytes;
		if (done.until_ns)
			output->written.until_ns = done.until_ns;
		output->busy = false;
	}
	pthread_mutex_unlock(&output->lock);
	return NULL;
}

/* --- Its callers --- */

/* "20261129T034708Z.rss=2G" */
static bool is_of_condition(const char *name)
{
	static const char digits[] = "0123456789";

	return strspn(name, digits) == 8 && name[8] == 'T' && strspn(name + 9, digits) == 6 &&
	       name[15] == 'Z' && name[16] == '.' &&
	       strncmp(name + 17, RING_ON_SIGNAL, strlen(RING_ON_SIGNAL)) != 0;
}

static uint32_t count_before(int dir_fd)
{
	_cleanup_closedir_ DIR *entries = NULL;
	const struct dirent *entry;
	uint32_t nr = 0;

	if (segment_names_open(dir_fd, &entries))
		return 0;
	while ((entry = readdir(entries)))
		nr += is_of_condition(entry->d_name);
	return nr;
}

struct ring_output *ring_output_create(int dir_fd, const char *dir, const struct stat *owner)
{
	struct ring_output *output = calloc(1, sizeof(*output));

	if (!output)
		return NULL;
	output->dir_fd = dir_fd;
	output->dir = dir;
	output->owner = *owner;
	output->written.nr_before = count_before(dir_fd);
	pthread_mutex_init(&output->lock, NULL);
	pthread_cond_init(&output->work, NULL);
	return output;
}

int ring_output_start(struct ring_output *output)
{
	int err = segment_rights_start_thread(&output->thread, run, output);

	output->has_thread = !err;
	if (err)
		diag_error("cannot start a thread to write into %s: %s", output->dir,
			   strerror(-err));
	return err;
}

void ring_output_destroy(struct ring_output *output)
{
	if (!output)
		return;
	pthread_mutex_lock(&output->lock);
	output->stop = true;
	pthread_cond_signal(&output->work);
	pthread_mutex_unlock(&output->lock);
	if (output->has_thread)
		pthread_join(output->thread, NULL);
	forget(output);
	pthread_cond_destroy(&output->work);
	pthread_mutex_destroy(&output->lock);
	free(output);
}

bool ring_output_is_busy(struct ring_output *output)
{
	bool busy;

	pthread_mutex_lock(&output->lock);
	busy = output->busy;
	pthread_mutex_unlock(&output->lock);
	return busy;
}

void ring_output_write(struct ring_output *output, const char *reason,
		       struct closed_segment *segments, size_t nr, uint64_t until_ns)
{
	pthread_mutex_lock(&output->lock);
	snprintf(output->reason, sizeof(output->reason), "%s", reason);
	output->segments = segments;
	output->nr = nr;
	output->until_ns = until_ns;
	output->busy = true;
	pthread_cond_signal(&output->work);
	pthread_mutex_unlock(&output->lock);
}

void ring_output_abandon(struct ring_output *output)
{
	atomic_store(&output->abandoned, true);
}

struct ring_written ring_output_written(struct ring_output *output)
{
	struct ring_written written;

	pthread_mutex_lock(&output->lock);
	written = output->written;
	pthread_mutex_unlock(&output->lock);
	return written;
}
