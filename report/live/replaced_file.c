/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/live/replaced_file.h"

#include "common/output_file.h"
#include "common/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* A pipe or a device was not put there by us. */
static int check_name(int dir_fd, const char *name)
{
	struct stat st;

	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	return S_ISREG(st.st_mode) || S_ISLNK(st.st_mode) ? 0 : -EEXIST;
}

static int write_new(int dir_fd, const char *name, mode_t mode, const char *bytes, size_t size)
{
	_cleanup_close_ int fd =
		openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	int err;

	if (fd < 0)
		return -errno;
	err = output_write_all(fd, bytes, size);
	/* The umask does not apply to it. */
	return !err && fchmod(fd, mode) < 0 ? -errno : err;
}

int replaced_file_write(int dir_fd, const char *name, mode_t mode, const char *bytes, size_t size)
{
	_cleanup_free_ char *new_name = NULL;
	int err = check_name(dir_fd, name);

	if (err)
		return err;
	/* node_exporter reads *.prom only. */
	if (asprintf(&new_name, ".%s.new", name) < 0)
		return -ENOMEM;
	/* One that a process left which was killed. */
	if (unlinkat(dir_fd, new_name, 0) < 0 && errno != ENOENT)
		return -errno;
	err = write_new(dir_fd, new_name, mode, bytes, size);
	if (!err && renameat(dir_fd, new_name, dir_fd, name) < 0)
		err = -errno;
	if (err)
		unlinkat(dir_fd, new_name, 0);
	return err;
}
