/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/proc/proc_file.h"

#include "common/scope.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

void proc_file_path(char ret[static PROC_FILE_PATH_SIZE], pid_t pid, const char *name)
{
	snprintf(ret, PROC_FILE_PATH_SIZE, "/proc/%d/%s", (int)pid, name);
}

void proc_file_mapping_path(char ret[static PROC_FILE_PATH_SIZE], pid_t pid, uint64_t start,
			    uint64_t end)
{
	snprintf(ret, PROC_FILE_PATH_SIZE, "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, (int)pid,
		 start, end);
}

static int read_all(int dir_fd, const char *path, char *text, size_t size)
{
	_cleanup_close_ int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC);
	size_t len = 0;
	ssize_t got;

	if (fd < 0)
		return -errno;
	while (len < size - 1 && (got = read(fd, text + len, size - 1 - len)) != 0) {
		if (got < 0)
			return -errno;
		len += (size_t)got;
	}
	text[len] = '\0';
	return 0;
}

int proc_file_read(pid_t pid, const char *name, char *text, size_t size)
{
	char path[PROC_FILE_PATH_SIZE];
	int err;

	proc_file_path(path, pid, name);
	err = read_all(AT_FDCWD, path, text, size);
	return err == -ENOENT ? -ESRCH : err;
}

int proc_file_read_at(int proc_fd, const char *name, char *text, size_t size)
{
	return read_all(proc_fd, name, text, size);
}

FILE *proc_file_open(pid_t pid, const char *name)
{
	char path[PROC_FILE_PATH_SIZE];

	proc_file_path(path, pid, name);
	return fopen(path, "re");
}

const char *proc_file_find(const char *text, const char *key)
{
	size_t len = strlen(key);

	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, key, len) == 0)
			return line + len;
	}
	return NULL;
}

int proc_file_number(const char *text, const char *key, uint64_t *ret)
{
	const char *value = proc_file_find(text, key);

	if (!value)
		return -ENODATA;
	value += strspn(value, " \t");
	if (!isdigit((unsigned char)*value))
		return -ENODATA;
	*ret = strtoull(value, NULL, 10);
	return 0;
}
