/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/output_file.h"

#include "common/diag.h"
#include "common/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

/* The id in environment variable @name, or -1: sudo sets SUDO_UID and SUDO_GID. */
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

/* Gives @fd, of what we have made for who called sudo, to them; @path is for the message. */
static void give_to_caller(int fd, const char *path)
{
	long uid = geteuid() == 0 ? sudo_id("SUDO_UID") : -1;

	if (uid >= 0 && fchown(fd, (uid_t)uid, (gid_t)sudo_id("SUDO_GID")) < 0)
		diag_warn("%s stays root's: %s", path, strerror(errno));
}

/* @name in @dir_fd is @path to the user. */
static int open_at(int dir_fd, const char *name, const char *path, bool keep)
{
	/* O_NONBLOCK: a FIFO at that place must not hang us; O_TRUNC only once it is known. */
	_cleanup_close_ int fd =
		openat(dir_fd, name,
		       O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK, 0600);
	struct stat st;

	if (fd < 0) {
		int err = errno;

		diag_error("cannot write %s: %s%s", path, strerror(err),
			   err == ELOOP ? "; it is a symbolic link, name the file itself" : "");
		return -err;
	}
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode)) {
		/* /dev/null and the like are fine: nothing in them is replaced. */
		if (S_ISCHR(st.st_mode))
			return steal_fd(fd);
		diag_error("cannot write %s: not a regular file", path);
		return -EINVAL;
	}
	if (!keep && ftruncate(fd, 0) < 0) {
		int err = errno;

		diag_error("cannot truncate %s: %s", path, strerror(err));
		return -err;
	}
	give_to_caller(fd, path);
	return steal_fd(fd);
}

int output_file_open(const char *path)
{
	return open_at(AT_FDCWD, path, path, false);
}

int output_file_open_kept(const char *path)
{
	return open_at(AT_FDCWD, path, path, true);
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

/* Whether nobody but us, and who called sudo, can put something into the directory @fd. */
static int check_dir(int fd, const char *path)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_uid != geteuid() && (long)st.st_uid != sudo_id("SUDO_UID")) {
		diag_error(
			"cannot write into %s: it belongs to somebody else; name a new directory",
			path);
		return -EPERM;
	}
	if (st.st_mode & S_IWOTH) {
		diag_error("cannot write into %s: everybody may write there; name a new directory",
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
	/* "link/" is the directory behind the link, O_NOFOLLOW or not. */
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
			diag_error("cannot make the directory %s: %s", path, strerror(err));
		return -err;
	}
	err = check_dir(fd, path);
	if (err)
		return err;
	if (is_new)
		give_to_caller(fd, path);
	return steal_fd(fd);
}
