/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/output_file.h"

#include "common/diag.h"
#include "common/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <linux/major.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/types.h>

#define MAX_TRIES 8

/* A recording of malloc() and its kind takes as much before its first record. */
#define MIN_ROOM_BYTES 65536

/* The id in the environment variable @name, or -1. sudo sets SUDO_UID and SUDO_GID. */
static long sudo_id(const char *name)
{
	const char *text = getenv(name);
	char *end;

	if (!text || !*text)
		return -1;
	errno = 0;
	long id = strtol(text, &end, 10);
	return errno || *end || id < 0 ? -1 : id;
}

/* Makes the sudo caller the owner of the new file @fd. @path is for the message. */
static void give_to_caller(int fd, const char *path)
{
	long uid = geteuid() == 0 ? sudo_id("SUDO_UID") : -1;

	if (uid >= 0 && fchown(fd, (uid_t)uid, (gid_t)sudo_id("SUDO_GID")) < 0)
		diag_warn("%s still belongs to root: %s", path, strerror(errno));
}

/* True if @uid is this process's user or the sudo caller. */
static bool is_ours(uid_t uid)
{
	return uid == geteuid() || (geteuid() == 0 && (long)uid == sudo_id("SUDO_UID"));
}

/* Devices that opening has no effect on and that store nothing: null, zero, full, terminals. */
static bool is_harmless_device(const struct stat *st)
{
	unsigned int type = major(st->st_rdev), number = minor(st->st_rdev);

	if (!S_ISCHR(st->st_mode))
		return false;
	return (type == MEM_MAJOR && (number == 3 || number == 5 || number == 7)) ||
	       type == TTY_MAJOR || type == TTYAUX_MAJOR ||
	       (type >= UNIX98_PTY_SLAVE_MAJOR &&
		type < UNIX98_PTY_SLAVE_MAJOR + UNIX98_PTY_MAJOR_COUNT);
}

/* Why an existing file must not be written to; NULL if it may be. */
static const char *find_objection(const struct stat *st)
{
	if (S_ISLNK(st->st_mode))
		return "it is a symbolic link, name the file itself";
	if (is_harmless_device(st))
		return NULL;
	if (!S_ISREG(st->st_mode))
		return "not a regular file";
	if (!is_ours(st->st_uid))
		return "it belongs to another user; remove it, or name another file";
	/* Another user may have linked a file that only we may write to. */
	if (st->st_nlink > 1)
		return "it has other names, too (hard links); remove it, or name another file";
	return NULL;
}

/* Opens an existing file. Checks it first, because opening a device or a FIFO has effects. */
static int open_existing(int dir_fd, const char *name, const char *path, struct stat *ret_stat)
{
	_cleanup_close_ int path_fd = openat(dir_fd, name, O_PATH | O_CLOEXEC | O_NOFOLLOW);
	const char *objection;
	char link[64];
	int fd, err;

	if (path_fd < 0 || fstat(path_fd, ret_stat) < 0)
		return -errno;
	objection = find_objection(ret_stat);
	if (objection) {
		diag_error("cannot write %s: %s", path, objection);
		return -EPERM;
	}
	snprintf(link, sizeof(link), "/proc/self/fd/%d", path_fd);
	fd = open(link, O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd >= 0)
		return fd;
	err = errno;
	diag_error("cannot write %s: %s", path, strerror(err));
	return -err;
}

/* Creates a file that only its owner can read. Returns its descriptor or a negative errno. */
static int create_at(int dir_fd, const char *name, const char *path)
{
	int fd = openat(dir_fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY,
			0600);
	int err = errno;

	if (fd >= 0) {
		give_to_caller(fd, path);
		return fd;
	}
	if (err != EEXIST)
		diag_error("cannot write %s: %s", path, strerror(err));
	return -err;
}

/* Opens @name in @dir_fd. Messages call it @path. */
static int open_at(int dir_fd, const char *name, const char *path, bool keep)
{
	struct stat st = {0};

	for (int tries = 0; tries < MAX_TRIES; tries++) {
		_cleanup_close_ int fd = create_at(dir_fd, name, path);

		if (fd != -EEXIST)
			return steal_fd(fd);
		fd = open_existing(dir_fd, name, path, &st);
		if (fd == -ENOENT)
			continue; /* it was removed meanwhile */
		if (fd < 0 || !S_ISREG(st.st_mode))
			return steal_fd(fd);
		if (!keep) {
			int err = ftruncate(fd, 0) < 0 ? -errno : 0;

			if (err)
				diag_error("cannot truncate %s: %s", path, strerror(-err));
			return err ? err : steal_fd(fd);
		}
		/* An empty file is not a recording to keep, but another process may have it open.
		 */
		if (st.st_size > 0)
			return steal_fd(fd);
		if (unlinkat(dir_fd, name, 0) < 0) {
			int err = -errno;

			diag_error("cannot replace %s: %s", path, strerror(-err));
			return err;
		}
	}
	diag_error("cannot write %s: another process keeps creating and removing it", path);
	return -EEXIST;
}

int output_file_open(const char *path)
{
	if (strcmp(path, "/dev/stdout") == 0) {
		int fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);

		return fd < 0 ? -errno : fd;
	}
	return open_at(AT_FDCWD, path, path, false);
}

int output_file_redirect(const char *path)
{
	_cleanup_close_ int fd = output_file_open(path);
	int err;

	if (fd < 0)
		return fd;
	if (dup2(fd, STDOUT_FILENO) >= 0)
		return 0;
	err = errno;
	diag_error("cannot write %s: %s", path, strerror(err));
	return -err;
}

int output_check_room(int fd, uint64_t freed_bytes)
{
	struct statvfs fs;
	struct stat st;
	uint64_t nr, needed;

	/* Some file systems do not tell. Devices store nothing. */
	if (fstat(fd, &st) < 0 || S_ISCHR(st.st_mode) || fstatvfs(fd, &fs) < 0 || !fs.f_blocks ||
	    !fs.f_frsize)
		return 0;
	nr = geteuid() == 0 ? fs.f_bfree : fs.f_bavail;
	/* In blocks: a large disk, or one that does not tell, has more bytes than a number can. */
	needed = MIN_ROOM_BYTES / fs.f_frsize + 1;
	return nr < needed && nr + freed_bytes / fs.f_frsize < needed ? -ENOSPC : 0;
}

static bool is_same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* What output_file_begin() frees: @path takes the place of @path.old. */
static uint64_t bytes_to_be_freed(int fd, const char *path)
{
	_cleanup_free_ char *old = NULL;
	struct stat st;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size == 0 ||
	    asprintf(&old, "%s.old", path) < 0)
		return 0;
	return lstat(old, &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink == 1
		       ? (uint64_t)st.st_blocks * 512
		       : 0;
}

int output_file_open_kept(const char *path)
{
	_cleanup_close_ int fd = open_at(AT_FDCWD, path, path, true);
	int err = fd < 0 ? 0 : output_check_room(fd, bytes_to_be_freed(fd, path));

	if (!err)
		return steal_fd(fd);
	diag_error("cannot write %s: %s", path, strerror(-err));
	output_file_drop_empty(fd, path);
	return err;
}

/* Renames @name in @dir_fd to @name.old, if it is still the file @kept. */
static int set_aside(int dir_fd, const char *name, const struct stat *kept)
{
	_cleanup_free_ char *old = NULL;
	struct stat st;

	if (asprintf(&old, "%s.old", name) < 0)
		return -ENOMEM;
	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (!is_same_file(&st, kept))
		return -ESTALE;
	if (fstatat(dir_fd, old, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    (!S_ISREG(st.st_mode) || !is_ours(st.st_uid)))
		return -EEXIST;
	return renameat(dir_fd, name, dir_fd, old) < 0 ? -errno : 0;
}

/* Opens the directory of @path: one for all steps, even if the path to it changes. */
static int open_dir_of(const char *path)
{
	_cleanup_free_ char *copy = strdup(path);
	int fd = copy ? open(dirname(copy), O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;

	return fd < 0 ? -errno : fd;
}

int output_file_begin(int fd, const char *path)
{
	_cleanup_free_ char *for_name = strdup(path);
	_cleanup_close_ int dir_fd = -1, new_fd = -1;
	const char *name;
	struct stat st;
	int err;

	if (!for_name)
		return -ENOMEM;
	name = basename(for_name);
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size == 0)
		return 0;
	dir_fd = open_dir_of(path);
	err = dir_fd < 0 ? dir_fd : set_aside(dir_fd, name, &st);
	if (err) {
		diag_error("cannot keep the old %s as %s.old: %s", path, path, strerror(-err));
		return err;
	}
	new_fd = create_at(dir_fd, name, path);
	if (new_fd == -EEXIST)
		diag_error("cannot write %s: another process has created it meanwhile", path);
	if (new_fd < 0)
		return new_fd;
	return dup3(new_fd, fd, O_CLOEXEC) < 0 ? -errno : 0;
}

void output_file_drop_empty(int fd, const char *path)
{
	_cleanup_free_ char *for_name = strdup(path);
	_cleanup_close_ int dir_fd = open_dir_of(path);
	const char *name = for_name ? basename(for_name) : NULL;
	struct stat ours, named;

	if (name && dir_fd >= 0 && fstat(fd, &ours) == 0 && S_ISREG(ours.st_mode) &&
	    ours.st_size == 0 && fstatat(dir_fd, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
	    is_same_file(&ours, &named))
		unlinkat(dir_fd, name, 0);
}

int output_file_open_at(int dir_fd, const char *dir, const char *name)
{
	_cleanup_free_ char *path = NULL;

	if (asprintf(&path, "%s/%s", dir, name) < 0) {
		diag_error("cannot write %s: out of memory", name);
		return -ENOMEM;
	}
	return open_at(dir_fd, name, path, false);
}

/* Returns 0 if only this user and the sudo caller can put files into the directory @fd. */
static int check_dir(int fd, const char *path)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!is_ours(st.st_uid)) {
		diag_error("cannot write into %s: it belongs to another user; name a new directory",
			   path);
		return -EPERM;
	}
	if (st.st_mode & S_IWOTH) {
		diag_error("cannot write into %s: all users may write there; name a new directory",
			   path);
		return -EPERM;
	}
	return 0;
}

int output_dir_open(const char *path)
{
	_cleanup_free_ char *name = strdup(path);
	_cleanup_close_ int fd = -1;
	bool is_new;
	int err;

	if (!name)
		return -ENOMEM;
	/* With a trailing slash, O_NOFOLLOW would follow a link. */
	for (size_t len = strlen(name); len > 1 && name[len - 1] == '/'; len--)
		name[len - 1] = '\0';
	is_new = mkdir(name, 0700) == 0;
	if (is_new || errno == EEXIST)
		fd = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0) {
		struct stat st;

		err = errno;
		if (lstat(name, &st) == 0 && S_ISLNK(st.st_mode))
			diag_error("cannot write into %s: it is a symbolic link, name the "
				   "directory itself",
				   path);
		else
			diag_error("cannot create the directory %s: %s", path, strerror(err));
		return -err;
	}
	err = check_dir(fd, path);
	if (err)
		return err;
	if (is_new)
		give_to_caller(fd, path);
	return steal_fd(fd);
}

int output_write_all(int fd, const void *bytes, size_t size)
{
	const char *from = bytes;

	while (size > 0) {
		ssize_t len = write(fd, from, size);

		if (len < 0 && errno != EINTR)
			return -errno;
		if (len > 0) {
			from += len;
			size -= (size_t)len;
		}
	}
	return 0;
}
