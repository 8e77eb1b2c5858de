/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is in a directory of segments after a recording has ended. */
#include "common/scope.h"
#include "recorder/segments/segment_keeper.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#define HEAD	     "head"
#define DIR_TEMPLATE "/tmp/test_segment_keeper.XXXXXX"
#define PATH_BYTES   (sizeof(DIR_TEMPLATE) + SEGMENT_NAME_BYTES)

static bool is_full;

/* What the disk says. */
int fstatvfs(int fd, struct statvfs *ret)
{
	*ret = (struct statvfs){.f_frsize = 4096, .f_blocks = 1000};
	ret->f_bfree = ret->f_bavail = is_full ? 0 : 900;
	return 0;
}

/* How long the disk takes to remove a file. */
static long removal_ms;

int unlinkat(int dir_fd, const char *name, int flags)
{
	nanosleep(&(struct timespec){.tv_nsec = removal_ms * 1000000}, NULL);
	return (int)syscall(SYS_unlinkat, dir_fd, name, flags);
}

/* How far the time of day was set, and how much time has passed beyond what does. */
static int64_t step_s, passed_s;

int clock_gettime(clockid_t clock, struct timespec *ret)
{
	long err = syscall(SYS_clock_gettime, clock, ret);

	ret->tv_sec += passed_s + (clock == CLOCK_REALTIME ? step_s : 0);
	return (int)err;
}

static const struct segment_limits limits = {.bytes = 1 << 20};

/* Removes what is in the directory, and the directory. Returns how many files there were. */
static size_t remove_all(const char *dir)
{
	_cleanup_closedir_ DIR *entries = opendir(dir);
	size_t nr = 0;

	assert_non_null(entries);
	for (struct dirent *entry; (entry = readdir(entries));) {
		if (entry->d_name[0] == '.')
			continue;
		assert_int_equal(unlinkat(dirfd(entries), entry->d_name, 0), 0);
		nr++;
	}
	assert_int_equal(rmdir(dir), 0);
	return nr;
}

/* Makes a segment of an older recording, whose path is stored at @path. */
static void old_segment(const char *dir, uint32_t recording, off_t bytes,
			char path[static PATH_BYTES])
{
	char name[SEGMENT_NAME_BYTES];
	int fd;

	segment_name_format((struct segment_name){recording, 1}, name);
	snprintf(path, PATH_BYTES, "%s/%s", dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(ftruncate(fd, bytes), 0);
	close(fd);
}

/* Returns how many files a recording leaves: of one segment, whose successor may have been made. */
static size_t left_by(const char *first, bool wants_next)
{
	char dir[] = DIR_TEMPLATE;
	struct segment_keeper *keeper;
	int fd;

	assert_non_null(mkdtemp(dir));
	assert_int_equal(segment_keeper_create(dir, &limits, &keeper, &fd), 0);
	assert_int_equal(dprintf(fd, "%s", first), (int)strlen(first));
	assert_int_equal(segment_keeper_start(keeper), 0);
	segment_keeper_set_head(keeper, HEAD, strlen(HEAD));
	if (wants_next)
		segment_keeper_want(keeper);
	segment_keeper_destroy(keeper); /* when the thread has made the file */
	close(fd);
	return remove_all(dir);
}

static void test_only_what_was_recorded_is_left(void **state)
{
	(void)state;
	assert_int_equal(left_by("events", false), 1);
	assert_int_equal(left_by("", false), 0);
	/* The next one has no more than a head: it would be a recording that was not finished. */
	assert_int_equal(left_by("events", true), 1);
}

/* A kill between a segment's name and its first byte leaves it empty. */
static void test_empty_ones_are_limited_too(void **state)
{
	char dir[] = DIR_TEMPLATE, path[PATH_BYTES];
	struct segment_keeper *keeper;
	int fd;

	(void)state;
	assert_non_null(mkdtemp(dir));
	for (uint32_t nr = 1; nr <= 40; nr++)
		old_segment(dir, nr, 0, path);
	assert_int_equal(segment_keeper_create(dir, &limits, &keeper, &fd), 0);
	assert_int_equal(segment_keeper_start(keeper), 0);
	segment_keeper_destroy(keeper);
	close(fd);
	assert_int_equal(remove_all(dir), 12); /* eight tenths of 1 MiB, 64 KiB each */
}

/* How many bytes of an older segment there are, on a full disk. Returns what the start does. */
static int start_beside(size_t bytes)
{
	char dir[] = DIR_TEMPLATE, path[PATH_BYTES];
	struct segment_keeper *keeper;
	int fd, err;

	assert_non_null(mkdtemp(dir));
	old_segment(dir, 1, (off_t)bytes, path);
	is_full = true;
	err = segment_keeper_create(dir, &limits, &keeper, &fd);
	is_full = false;
	if (!err) {
		segment_keeper_destroy(keeper);
		close(fd);
	}
	assert_int_equal(remove_all(dir), 1);
	return err;
}

static void test_a_disk_is_not_full_that_will_have_room(void **state)
{
	(void)state;
	assert_int_equal(start_beside(500000), -ENOSPC);
	/* That is too much, and goes. */
	assert_int_equal(start_beside(2 << 20), 0);
}

/* The first segment needs the room of what goes. */
static void test_that_room_is_there_at_the_start(void **state)
{
	char dir[] = DIR_TEMPLATE, path[PATH_BYTES];
	struct segment_keeper *keeper;
	int fd;

	(void)state;
	assert_non_null(mkdtemp(dir));
	old_segment(dir, 1, 2 << 20, path);
	assert_int_equal(segment_keeper_create(dir, &limits, &keeper, &fd), 0);
	removal_ms = 100;
	assert_int_equal(segment_keeper_start(keeper), 0);
	removal_ms = 0;
	assert_int_equal(access(path, F_OK), -1);
	segment_keeper_destroy(keeper);
	close(fd);
	assert_int_equal(remove_all(dir), 0);
}

/* --- the time that is kept: ten minutes --- */

#define KEPT_S 600
#define HOUR_S 3600
#define YEAR_S (365 * 24 * (int64_t)HOUR_S)

/* A recording with one segment so far, and the descriptor of that. */
struct recording {
	char dir[sizeof(DIR_TEMPLATE)];
	struct segment_keeper *keeper;
	int fd;
};

static void start(struct recording *recording, bool in_memory)
{
	const struct segment_limits of_time = {.age_ns = KEPT_S * UINT64_C(1000000000),
					       .in_memory = in_memory};

	assert_int_equal(
		segment_keeper_create(recording->dir, &of_time, &recording->keeper, &recording->fd),
		0);
	assert_int_equal(dprintf(recording->fd, HEAD), (int)strlen(HEAD));
	assert_int_equal(segment_keeper_start(recording->keeper), 0);
	segment_keeper_set_head(recording->keeper, HEAD, strlen(HEAD));
}

/* The next segment begins. What is too old has gone when that has been waited for. */
static void cut(struct recording *recording)
{
	int fd;

	do {
		segment_keeper_want(recording->keeper);
		fd = segment_keeper_take(recording->keeper);
		assert_true(fd >= 0 || fd == -EAGAIN);
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	} while (fd < 0);
	segment_keeper_complete(recording->keeper, recording->fd);
	recording->fd = fd;
	segment_keeper_settle(recording->keeper);
}

static void finish(struct recording *recording)
{
	segment_keeper_destroy(recording->keeper);
	close(recording->fd);
}

/* Makes a segment that was changed so long ago, by the true time of day. */
static void segment_of(const char *dir, uint32_t recording, int64_t age_s,
		       char path[static PATH_BYTES])
{
	struct timespec times[2];

	old_segment(dir, recording, 1, path);
	syscall(SYS_clock_gettime, CLOCK_REALTIME, &times[0]);
	times[0].tv_sec -= age_s;
	times[1] = times[0];
	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void test_setting_the_clock_keeps_all(void **state)
{
	struct recording recording = {.dir = DIR_TEMPLATE};
	char old[PATH_BYTES];

	(void)state;
	assert_non_null(mkdtemp(recording.dir));
	segment_of(recording.dir, 1, KEPT_S / 2, old);
	start(&recording, false);
	cut(&recording);
	step_s = HOUR_S;
	cut(&recording);
	cut(&recording);
	finish(&recording);
	step_s = 0;
	assert_int_equal(remove_all(recording.dir), 5);
}

/* Also if the clock is set back at the same time. */
static void test_what_is_too_old_goes(void **state)
{
	struct recording recording = {.dir = DIR_TEMPLATE};
	char old[PATH_BYTES], older[PATH_BYTES];

	(void)state;
	assert_non_null(mkdtemp(recording.dir));
	segment_of(recording.dir, 1, KEPT_S + 10, older);
	segment_of(recording.dir, 2, KEPT_S / 2, old);
	start(&recording, false);
	assert_int_equal(access(older, F_OK), -1);
	assert_int_equal(access(old, F_OK), 0);
	cut(&recording);
	passed_s = KEPT_S + 10;
	step_s = -HOUR_S;
	cut(&recording); /* the one before has ended now */
	finish(&recording);
	passed_s = step_s = 0;
	assert_int_equal(remove_all(recording.dir), 2);
}

/* A machine without a clock of its own learns the time of day after it has started. */
static void test_the_clock_may_be_set_late(void **state)
{
	struct recording recording = {.dir = DIR_TEMPLATE};
	char old[PATH_BYTES], older[PATH_BYTES];

	(void)state;
	assert_non_null(mkdtemp(recording.dir));
	segment_of(recording.dir, 1, KEPT_S + 10, older);
	segment_of(recording.dir, 2, KEPT_S / 2, old);
	step_s = -10 * YEAR_S;
	start(&recording, false);
	cut(&recording);
	cut(&recording);
	assert_int_equal(access(older, F_OK), 0);
	step_s = 0;
	cut(&recording);
	finish(&recording);
	assert_int_equal(access(older, F_OK), -1);
	assert_int_equal(access(old, F_OK), 0);
	assert_int_equal(remove_all(recording.dir), 5);
}

/* Otherwise it would keep all that are newer, too. */
static void test_one_from_the_future_goes(void **state)
{
	struct recording recording = {.dir = DIR_TEMPLATE};
	char future[PATH_BYTES];

	(void)state;
	assert_non_null(mkdtemp(recording.dir));
	segment_of(recording.dir, 1, -YEAR_S, future);
	start(&recording, false);
	cut(&recording);
	assert_int_equal(access(future, F_OK), 0);
	passed_s = KEPT_S + 10;
	cut(&recording);
	finish(&recording);
	passed_s = 0;
	assert_int_equal(remove_all(recording.dir), 2);
}

/* In memory. What is written has the time of day in its name. */
static void test_setting_the_clock_keeps_the_ring(void **state)
{
	struct recording recording = {.dir = DIR_TEMPLATE};
	char path[PATH_MAX], from[32];
	_cleanup_closedir_ DIR *entries = NULL;
	const struct dirent *entry;
	const char *name;
	time_t now;

	(void)state;
	assert_non_null(mkdtemp(recording.dir));
	start(&recording, true);
	cut(&recording);
	step_s = HOUR_S;
	cut(&recording);
	segment_keeper_end(recording.keeper);
	now = time(NULL) + HOUR_S;
	strftime(from, sizeof(from), "%Y%m%dT%H%M%SZ", gmtime(&now));
	assert_int_equal(segment_keeper_write_last(recording.keeper, "end"), 0);
	finish(&recording);
	step_s = 0;
	entries = opendir(recording.dir);
	assert_non_null(entries);
	while ((entry = readdir(entries)) && entry->d_name[0] == '.')
		;
	name = entry ? entry->d_name : "";
	assert_in_range(strcmp(name, from), 0, INT_MAX);
	snprintf(path, sizeof(path), "%s/%s", recording.dir, name);
	assert_int_equal(remove_all(path), 3);
	assert_int_equal(rmdir(recording.dir), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_only_what_was_recorded_is_left),
		cmocka_unit_test(test_empty_ones_are_limited_too),
		cmocka_unit_test(test_a_disk_is_not_full_that_will_have_room),
		cmocka_unit_test(test_that_room_is_there_at_the_start),
		cmocka_unit_test(test_setting_the_clock_keeps_all),
		cmocka_unit_test(test_what_is_too_old_goes),
		cmocka_unit_test(test_the_clock_may_be_set_late),
		cmocka_unit_test(test_one_from_the_future_goes),
		cmocka_unit_test(test_setting_the_clock_keeps_the_ring),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
