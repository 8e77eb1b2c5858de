/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/segments/closed_segments.h"

#include "common/clock.h"
#include "common/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Closed segments may take so much; a new one, and one that is being closed, have the rest. */
#define CLOSED_SHARE(bytes) ((bytes) / 10 * 8)
/* So much counts of each, so that their number is limited, too: a kill leaves empty ones. */
#define MIN_COUNTED_BYTES 65536

void closed_segments_deinit(struct closed_segments *segments)
{
	for (size_t i = 0; i < segments->nr; i++)
		if (segments->list[i].fd >= 0)
			close(segments->list[i].fd);
	free(segments->list);
	*segments = (struct closed_segments){0};
}

int closed_segments_add(struct closed_segments *segments, const struct closed_segment *segment)
{
	struct closed_segment *grown =
		reallocarray(segments->list, segments->nr + 1, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	segments->list = grown;
	grown[segments->nr++] = *segment;
	return 0;
}

/*
 * Its last change tells when a segment of an earlier recording has ended. If that is in the future,
 * the clock is wrong, or it was then: the segment counts as new until the clock has come there.
 */
static void find_end(struct closed_segment *segment)
{
	uint64_t day_ns = clock_ns(CLOCK_REALTIME);

	if (segment->changed_ns > day_ns)
		return;
	segment->end_ns = (int64_t)(clock_now_ns() - (day_ns - segment->changed_ns));
	segment->changed_ns = 0;
}

static int add_earlier(struct closed_segments *segments, struct segment_name name,
		       const struct stat *st)
{
	struct closed_segment segment = {
		.name = name,
		.bytes = (uint64_t)st->st_size,
		.end_ns = (int64_t)clock_now_ns(),
		.changed_ns =
			(uint64_t)st->st_mtim.tv_sec * 1000000000 + (uint64_t)st->st_mtim.tv_nsec,
		.fd = -1,
	};

	find_end(&segment);
	return closed_segments_add(segments, &segment);
}

static int compare(const void *a, const void *b)
{
	const struct closed_segment *x = a, *y = b;

	return segment_name_compare(&x->name, &y->name);
}

int closed_segments_list(struct closed_segments *segments, int dir_fd, uint32_t *recording)
{
	_cleanup_closedir_ DIR *entries = NULL;
	int err = segment_names_open(dir_fd, &entries);
	struct segment_name name;

	if (err)
		return err;
	while (!err && segment_names_next(entries, &name)) {
		char text[SEGMENT_NAME_BYTES];
		struct stat st;

		segment_name_format(name, text);
		if (name.recording == SEGMENT_NAME_MAX)
			return -ERANGE;
		if (name.recording >= *recording)
			*recording = name.recording + 1;
		if (fstatat(dir_fd, text, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode))
			err = add_earlier(segments, name, &st);
	}
	if (segments->nr)
		qsort(segments->list, segments->nr, sizeof(*segments->list), compare);
	return err;
}

/* True if the segment must go when it is the oldest one, of those that have so many bytes. */
static bool is_too_much(const struct closed_segment *oldest, const struct segment_limits *limits,
			uint64_t bytes)
{
	if (limits->bytes && bytes > CLOSED_SHARE(limits->bytes))
		return true;
	return limits->age_ns && clock_now_ns() - (uint64_t)oldest->end_ns > limits->age_ns;
}

static int remove_file(const struct closed_segment *segment, int dir_fd)
{
	char name[SEGMENT_NAME_BYTES];

	if (segment->fd >= 0)
		return close(segment->fd) < 0 ? -errno : 0;
	segment_name_format(segment->name, name);
	return unlinkat(dir_fd, name, 0) < 0 && errno != ENOENT ? -errno : 0;
}

static uint64_t counted_bytes(const struct closed_segment *segment)
{
	return segment->bytes > MIN_COUNTED_BYTES ? segment->bytes : MIN_COUNTED_BYTES;
}

/* How many of the oldest ones are beyond @limits. */
static size_t nr_beyond(struct closed_segments *segments, const struct segment_limits *limits)
{
	uint64_t bytes = 0;
	size_t nr = 0;

	for (size_t i = 0; i < segments->nr; i++) {
		bytes += counted_bytes(&segments->list[i]);
		if (segments->list[i].changed_ns)
			find_end(&segments->list[i]);
	}
	while (nr < segments->nr && is_too_much(&segments->list[nr], limits, bytes))
		bytes -= counted_bytes(&segments->list[nr++]);
	return nr;
}

uint64_t closed_segments_beyond(struct closed_segments *segments,
				const struct segment_limits *limits)
{
	uint64_t bytes = 0;

	for (size_t nr = nr_beyond(segments, limits); nr > 0; nr--)
		bytes += segments->list[nr - 1].bytes;
	return bytes;
}

int closed_segments_drop(struct closed_segments *segments, const struct segment_limits *limits,
			 int dir_fd)
{
	for (size_t nr = nr_beyond(segments, limits); nr > 0; nr--) {
		int err = remove_file(&segments->list[0], dir_fd);

		if (err)
			return err;
		memmove(segments->list, segments->list + 1,
			--segments->nr * sizeof(*segments->list));
	}
	return 0;
}

struct closed_segment *closed_segments_copy(const struct closed_segments *segments)
{
	struct closed_segment *copy = calloc(segments->nr, sizeof(*copy));
	size_t nr = 0;
	int err;

	if (!copy)
		return NULL;
	memcpy(copy, segments->list, segments->nr * sizeof(*copy));
	while (nr < segments->nr &&
	       (copy[nr].fd = fcntl(segments->list[nr].fd, F_DUPFD_CLOEXEC, 3)) >= 0)
		nr++;
	if (nr == segments->nr)
		return copy;
	err = errno;
	while (nr-- > 0)
		close(copy[nr].fd);
	free(copy);
	errno = err;
	return NULL;
}
