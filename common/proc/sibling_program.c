/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/proc/sibling_program.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int sibling_program_open(const char *name)
{
	char path[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 1);
	char *own_name;
	size_t left;
	int fd;

	if (len < 0)
		return -errno;
	path[len] = '\0';
	own_name = strrchr(path, '/');
	if (!own_name)
		return -ENOENT;
	left = sizeof(path) - (size_t)(own_name + 1 - path);
	if ((size_t)snprintf(own_name + 1, left, "%s", name) >= left)
		return -ENAMETOOLONG;
	fd = open(path, O_PATH | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}
