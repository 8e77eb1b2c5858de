/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/elf/own_mounts.h"

#include "common/scope.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define MAX_OVERLAYS 4096 /* one for each container, and each of its images that is mounted */

static struct {
	pthread_mutex_t lock;
	pid_t pid; /* whose descriptor that is; a child's number may be another file's */
	int fd;
	ino_t inode; /* it may have been closed, too */
	struct own_mount mounts[MAX_OVERLAYS];
	size_t nr;
} known = {.lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1};

size_t own_mounts_read(FILE *mountinfo, struct own_mount *ret, size_t room)
{
	_cleanup_free_ char *line = NULL;
	size_t capacity = 0, nr = 0;
	unsigned int id, major, minor;

	/* Blanks in paths are escaped. */
	while (nr < room && getline(&line, &capacity, mountinfo) > 0)
		if (strstr(line, " - overlay ") &&
		    sscanf(line, "%9u %*s %8u:%8u", &id, &major, &minor) == 3)
			ret[nr++] = (struct own_mount){id, makedev(major, minor)};
	return nr;
}

static bool has_descriptor(void)
{
	struct stat st;

	return known.fd >= 0 && known.pid == getpid() && fstat(known.fd, &st) == 0 &&
	       st.st_ino == known.inode;
}

/* mounts_poll() in fs/namespace.c: something was mounted or unmounted since the last call. */
static bool has_changed(void)
{
	struct pollfd changes = {.fd = known.fd, .events = POLLPRI};

	return poll(&changes, 1, 0) > 0;
}

static bool open_again(void)
{
	int fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return false;
	if (fstat(fd, &st)) {
		close(fd);
		return false;
	}
	known.fd = fd;
	known.inode = st.st_ino;
	known.pid = getpid();
	return true;
}

/* The number of a device that is gone is given out again at once. */
static void update(void)
{
	if (has_descriptor() ? !has_changed() : !open_again())
		return;
	lseek(known.fd, 0, SEEK_SET);
	_cleanup_close_ int fd = fcntl(known.fd, F_DUPFD_CLOEXEC, 0);
	_cleanup_fclose_ FILE *mountinfo = fd < 0 ? NULL : fdopen(fd, "r");

	if (mountinfo)
		(void)steal_fd(fd);
	known.nr = mountinfo ? own_mounts_read(mountinfo, known.mounts, MAX_OVERLAYS) : 0;
}

void own_mounts_note(void)
{
	pthread_mutex_lock(&known.lock);
	update();
	if (has_descriptor())
		close(known.fd);
	known.fd = -1;
	pthread_mutex_unlock(&known.lock);
}

bool own_mounts_have(int fd, dev_t device)
{
	struct statx mount = {.stx_mask = 0};
	bool is_known = false;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &mount))
		mount.stx_mask = 0;
	pthread_mutex_lock(&known.lock);
	update();
	for (size_t i = 0; i < known.nr && !is_known; i++)
		is_known =
			known.mounts[i].device == device ||
			(mount.stx_mask & STATX_MNT_ID && known.mounts[i].id == mount.stx_mnt_id);
	pthread_mutex_unlock(&known.lock);
	return is_known;
}
