/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/output_file.h"

#include "common/diag.h"
#include "common/scope.h"

#include <errno.h>
#include <fcntl.h>
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

int output_file_open(const char *path)
{
	/* O_NONBLOCK: a FIFO at that place must not hang us; O_TRUNC only once it is known. */
	_cleanup_close_ int fd =
		open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK, 0600);
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
	if (ftruncate(fd, 0) < 0) {
		int err = errno;

		diag_error("cannot truncate %s: %s", path, strerror(err));
		return -err;
	}

	long uid = geteuid() == 0 ? sudo_id("SUDO_UID") : -1;
	if (uid >= 0 && fchown(fd, (uid_t)uid, (gid_t)sudo_id("SUDO_GID")) < 0)
		diag_warn("%s stays root's: %s", path, strerror(errno));
	return steal_fd(fd);
}
