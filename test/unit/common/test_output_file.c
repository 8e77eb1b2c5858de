/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What an output file may replace, and what happens to an existing recording. */
#include "common/output_file.h"

#include "common/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <cmocka.h>

#define SOMEBODY    12345

#define BLOCK_BYTES 4096

/* What the disk says. */
static struct statvfs disk;

int fstatvfs(int fd, struct statvfs *ret)
{
	*ret = disk;
	return 0;
}

static char dir[] = "/tmp/leaktools-output-XXXXXX";

static int set_up(void **state)
{
	return mkdtemp(dir) && chdir(dir) == 0 ? 0 : -1;
}

static int tear_down(void **state)
{
	static const char *const names[] = {"out", "out.old", "other", "made"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		unlink(names[i]);
	return chdir("/") == 0 && rmdir(dir) == 0 ? 0 : -1;
}

static int start_anew(void **state)
{
	disk = (struct statvfs){
		.f_frsize = BLOCK_BYTES, .f_blocks = 1000, .f_bfree = 900, .f_bavail = 800};
	unsetenv("SUDO_UID");
	unsetenv("SUDO_GID");
	unlink("out");
	unlink("out.old");
	unlink("other");
	unlink("made");
	return 0;
}

static void put(const char *name, const char *text, mode_t mode)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

static void assert_holds(const char *name, const char *text)
{
	char held[64] = "";
	int fd = open(name, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_true(read(fd, held, sizeof(held) - 1) >= 0);
	assert_string_equal(held, text);
	close(fd);
}

static struct stat look_at(const char *name)
{
	struct stat st;

	assert_int_equal(lstat(name, &st), 0);
	return st;
}

static void assert_refused(const char *name)
{
	assert_true(output_file_open(name) < 0);
	assert_true(output_file_open_kept(name) < 0);
}

static void assert_written(int fd)
{
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "new", 3), 3);
	close(fd);
}

static void need_root(void)
{
	if (geteuid() != 0)
		skip();
}

static void a_new_file_is_nobody_elses(void **state)
{
	assert_written(output_file_open("out"));
	assert_int_equal(look_at("out").st_mode & 07777, 0600);
	assert_holds("out", "new");
}

static void a_report_replaces_what_is_ours(void **state)
{
	put("out", "something longer", 0644);
	assert_written(output_file_open("out"));
	assert_holds("out", "new");
	assert_int_equal(look_at("out").st_mode & 07777, 0644);
}

static void what_is_somebody_elses_is_refused(void **state)
{
	need_root();
	put("out", "theirs", 0666);
	assert_int_equal(chown("out", SOMEBODY, SOMEBODY), 0);
	assert_refused("out");
	setenv("SUDO_UID", "54321", 1);
	assert_refused("out");
	assert_holds("out", "theirs");
	assert_int_equal(look_at("out").st_uid, SOMEBODY);
}

static void who_called_sudo_gets_new_files_only(void **state)
{
	need_root();
	setenv("SUDO_UID", "12345", 1);
	setenv("SUDO_GID", "12345", 1);
	put("out", "root's", 0600);
	assert_written(output_file_open("out"));
	assert_int_equal(look_at("out").st_uid, 0);
	assert_written(output_file_open("made"));
	assert_int_equal(look_at("made").st_uid, SOMEBODY);
	assert_written(output_file_open("made"));
	assert_int_equal(look_at("made").st_uid, SOMEBODY);
}

static void links_are_refused(void **state)
{
	put("other", "other", 0600);
	assert_int_equal(symlink("other", "out"), 0);
	assert_refused("out");
	assert_int_equal(unlink("out"), 0);
	assert_int_equal(link("other", "out"), 0);
	assert_refused("out");
	assert_holds("other", "other");
}

static void devices_are_not_opened(void **state)
{
	int fd = output_file_open("/dev/null");

	assert_true(fd >= 0);
	close(fd);
	fd = output_file_open("/dev/stdout");
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(mkfifo("out", 0600), 0);
	assert_refused("out");
	need_root();
	assert_int_equal(unlink("out"), 0);
	assert_int_equal(mknod("out", S_IFCHR | 0600, makedev(1, 8)), 0); /* random */
	assert_refused("out");
}

static void an_old_recording_is_kept(void **state)
{
	int fd;

	put("out.old", "older", 0600);
	put("out", "old", 0644);
	fd = output_file_open_kept("out");
	assert_true(fd >= 0);
	assert_holds("out", "old");
	assert_int_equal(output_file_begin(fd, "out"), 0);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	assert_written(fd);
	assert_holds("out", "new");
	assert_holds("out.old", "old");
	assert_int_equal(look_at("out").st_mode & 07777, 0600);
}

/* A process that may no longer open the file may still have it open. */
static void an_empty_file_is_made_anew(void **state)
{
	ino_t empty;
	int fd;

	put("out", "", 0644);
	put("made", "", 0600); /* keeps the inode number from being used again */
	empty = look_at("out").st_ino;
	_cleanup_close_ int reader = open("out", O_RDONLY | O_CLOEXEC);
	assert_true(reader >= 0);
	fd = output_file_open_kept("out");
	assert_true(fd >= 0);
	assert_int_equal(output_file_begin(fd, "out"), 0);
	assert_written(fd);
	assert_true(look_at("out").st_ino != empty);
	assert_int_equal(look_at("out").st_mode & 07777, 0600);
	assert_int_equal(access("out.old", F_OK), -1);
}

static void nothing_of_others_is_lost_for_it(void **state)
{
	int fd;

	put("other", "other", 0600);
	put("out", "old", 0600);
	assert_int_equal(symlink("other", "out.old"), 0);
	fd = output_file_open_kept("out");
	assert_true(fd >= 0);
	assert_true(output_file_begin(fd, "out") < 0);
	assert_holds("out", "old");
	assert_int_equal(unlink("out.old"), 0);

	/* Another file has taken its place meanwhile. */
	assert_int_equal(rename("out", "made"), 0);
	put("out", "another", 0600);
	assert_int_equal(output_file_begin(fd, "out"), -ESTALE);
	assert_holds("out", "another");
	assert_holds("made", "old");
	close(fd);
}

static void a_full_disk_is_refused(void **state)
{
	disk.f_bfree = disk.f_bavail = 1;
	assert_int_equal(output_file_open_kept("out"), -ENOSPC);
	assert_int_equal(access("out", F_OK), -1);
	put("out", "old", 0600);
	assert_int_equal(output_file_open_kept("out"), -ENOSPC);
	assert_holds("out", "old");
}

/* Puts a file of so many blocks. */
static void put_blocks(const char *name, size_t nr)
{
	const char block[BLOCK_BYTES] = "x";
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	for (size_t i = 0; i < nr; i++)
		assert_int_equal(write(fd, block, sizeof(block)), sizeof(block));
	assert_int_equal(fsync(fd), 0);
	close(fd);
}

/* The older recording goes before the first byte is written. */
static void a_disk_is_not_full_that_will_have_room(void **state)
{
	int fd;

	disk.f_bfree = disk.f_bavail = 1;
	put_blocks("out.old", 100);
	/* Nothing takes its place. */
	assert_int_equal(output_file_open_kept("out"), -ENOSPC);
	put("out", "old", 0600);
	fd = output_file_open_kept("out");
	assert_true(fd >= 0);
	assert_int_equal(output_file_begin(fd, "out"), 0);
	close(fd);
	assert_holds("out.old", "old");
	/* That is too little. */
	put("out", "another", 0600);
	assert_int_equal(output_file_open_kept("out"), -ENOSPC);
}

static void a_disk_that_does_not_tell_is_taken(void **state)
{
	int fd;

	/* So many bytes are 0 in 64 bits. */
	disk.f_blocks = disk.f_bfree = disk.f_bavail = UINT64_MAX / BLOCK_BYTES + 1;
	fd = output_file_open_kept("out");
	assert_true(fd >= 0);
	close(fd);
	disk.f_frsize = 0;
	fd = output_file_open_kept("out");
	assert_true(fd >= 0);
	close(fd);
	disk = (struct statvfs){.f_frsize = BLOCK_BYTES};
	fd = output_file_open_kept("out");
	assert_true(fd >= 0);
	close(fd);
}

static void only_an_empty_file_of_ours_is_dropped(void **state)
{
	int fd = output_file_open_kept("out");

	assert_int_equal(rename("out", "made"), 0);
	put("out", "", 0600);
	output_file_drop_empty(fd, "out");
	assert_int_equal(access("out", F_OK), 0);
	assert_int_equal(rename("made", "out"), 0);
	assert_int_equal(write(fd, "new", 3), 3);
	output_file_drop_empty(fd, "out");
	assert_holds("out", "new");
	assert_int_equal(ftruncate(fd, 0), 0);
	output_file_drop_empty(fd, "out");
	assert_int_equal(access("out", F_OK), -1);
	close(fd);
	fd = output_file_open_kept("/dev/null");
	output_file_drop_empty(fd, "/dev/null");
	assert_int_equal(access("/dev/null", F_OK), 0);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_new_file_is_nobody_elses, start_anew),
		cmocka_unit_test_setup(a_report_replaces_what_is_ours, start_anew),
		cmocka_unit_test_setup(what_is_somebody_elses_is_refused, start_anew),
		cmocka_unit_test_setup(who_called_sudo_gets_new_files_only, start_anew),
		cmocka_unit_test_setup(links_are_refused, start_anew),
		cmocka_unit_test_setup(devices_are_not_opened, start_anew),
		cmocka_unit_test_setup(an_old_recording_is_kept, start_anew),
		cmocka_unit_test_setup(an_empty_file_is_made_anew, start_anew),
		cmocka_unit_test_setup(nothing_of_others_is_lost_for_it, start_anew),
		cmocka_unit_test_setup(a_full_disk_is_refused, start_anew),
		cmocka_unit_test_setup(a_disk_is_not_full_that_will_have_room, start_anew),
		cmocka_unit_test_setup(a_disk_that_does_not_tell_is_taken, start_anew),
		cmocka_unit_test_setup(only_an_empty_file_of_ours_is_dropped, start_anew),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
