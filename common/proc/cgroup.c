/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/proc/cgroup.h"

#include "common/diag.h"
#include "common/proc/proc_file.h"
#include "common/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <mntent.h>
#include <sys/stat.h>
#include <sys/vfs.h>

/* Opens directory @path. *@ret_type is its file system's type, a magic number of statfs(). */
static int open_directory(const char *path, long *ret_type)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct statfs fs;

	if (fd < 0 || fstatfs(fd, &fs) < 0)
		return -errno;
	*ret_type = (long)fs.f_type;
	return steal_fd(fd);
}

/* The first directory where cgroup v2 is mounted, or NULL. */
static char *find_hierarchy(void)
{
	FILE *mounts = setmntent("/proc/self/mounts", "re");
	struct mntent *entry;
	char *found = NULL;

	while (mounts && !found && (entry = getmntent(mounts)))
		if (strcmp(entry->mnt_type, "cgroup2") == 0)
			found = strdup(entry->mnt_dir);
	if (mounts)
		endmntent(mounts);
	return found;
}

static int report_no_hierarchy(const char *path)
{
	diag_error("cannot record cgroup %s: cgroup v2 is not mounted; mount it with "
		   "\"mount -t cgroup2 none DIRECTORY\"",
		   path);
	return -ENOENT;
}

int cgroup_open_root(const char *path)
{
	_cleanup_free_ char *hierarchy = find_hierarchy();
	long type;
	int fd;

	if (!hierarchy)
		return report_no_hierarchy(path);
	fd = open_directory(hierarchy, &type);
	if (fd < 0)
		diag_error("cannot open %s: %s", hierarchy, strerror(-fd));
	return fd;
}

int cgroup_open(const char *path)
{
	_cleanup_free_ char *hierarchy = find_hierarchy(), *below = NULL;
	long type = 0;
	int fd = open_directory(path, &type);

	if (!hierarchy) {
		if (fd >= 0)
			close(fd);
		return report_no_hierarchy(path);
	}
	if (fd >= 0 && type == CGROUP2_SUPER_MAGIC)
		return fd;
	if (fd >= 0)
		close(fd);
	if (fd >= 0 && type == CGROUP_SUPER_MAGIC) {
		diag_error("cannot record cgroup %s: it is a cgroup v1; choose a cgroup below %s",
			   path, hierarchy);
		return -EINVAL;
	}
	if (asprintf(&below, "%s/%s", hierarchy, path) < 0) {
		below = NULL;
		return -ENOMEM;
	}
	fd = open_directory(below, &type);
	if (fd < 0)
		diag_error("cannot record cgroup %s: %s; choose a cgroup below %s", path,
			   strerror(-fd), hierarchy);
	return fd;
}

/* The number in the cgroup's file @name; UINT64_MAX: there is none ("max"). */
static uint64_t number_in(int cgroup_fd, const char *name)
{
	uint64_t number;
	char text[32];

	if (proc_file_read_at(cgroup_fd, name, text, sizeof(text)) ||
	    proc_file_number(text, "", &number))
		return UINT64_MAX;
	return number;
}

static uint64_t memory_max(int cgroup_fd)
{
	return number_in(cgroup_fd, "memory.max");
}

/* As MemAvailable, it counts the cache of files, which the kernel gives up first. */
static uint64_t memory_left(int cgroup_fd)
{
	uint64_t max = memory_max(cgroup_fd), high = number_in(cgroup_fd, "memory.high");
	uint64_t used = number_in(cgroup_fd, "memory.current"), active = 0, inactive = 0;
	uint64_t limit = high < max ? high : max;
	char text[PROC_FILE_STATUS_SIZE];

	if (limit == UINT64_MAX || used == UINT64_MAX)
		return UINT64_MAX;
	if (proc_file_read_at(cgroup_fd, "memory.stat", text, sizeof(text)) == 0) {
		proc_file_number(text, "active_file", &active);
		proc_file_number(text, "inactive_file", &inactive);
	}
	used -= used < active + inactive ? used : active + inactive;
	return used < limit ? limit - used : 0;
}

/* The directory, in @hierarchy, of the cgroup that @pid is in; NULL: it is not known. */
static char *directory_of(pid_t pid, const char *hierarchy)
{
	char text[PATH_MAX] = "", *directory;
	const char *own;

	if (proc_file_read(pid, "cgroup", text, sizeof(text)))
		return NULL;
	own = proc_file_find(text, "0::");
	if (!own || asprintf(&directory, "%s%.*s", hierarchy, (int)strcspn(own, "\n"), own) < 0)
		return NULL;
	return directory;
}

int cgroup_open_of(pid_t pid)
{
	_cleanup_free_ char *hierarchy = find_hierarchy();
	_cleanup_free_ char *directory = hierarchy ? directory_of(pid, hierarchy) : NULL;
	long type = 0;
	int fd;

	/* One outside of our cgroup namespace is shown as "/../...". */
	if (!directory || strstr(directory, "/../"))
		return -ENOENT;
	fd = open_directory(directory, &type);
	if (fd < 0 || type == CGROUP2_SUPER_MAGIC)
		return fd;
	close(fd);
	return -ENOENT;
}

/* The lowest value of the cgroups that this process is in; UINT64_MAX: none has one. */
static uint64_t lowest(uint64_t (*value_of)(int cgroup_fd))
{
	_cleanup_free_ char *hierarchy = find_hierarchy();
	_cleanup_free_ char *directory = hierarchy ? directory_of(getpid(), hierarchy) : NULL;
	uint64_t least = UINT64_MAX;

	if (!directory)
		return UINT64_MAX;
	/* The root has no limit of its own, but a container sees its own cgroup as the root. */
	for (size_t len = strlen(directory); len >= strlen(hierarchy);) {
		_cleanup_close_ int fd = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
		uint64_t value = fd < 0 ? UINT64_MAX : value_of(fd);

		least = value < least ? value : least;
		while (len > 0 && directory[len - 1] != '/')
			len--;
		len -= len > 0;
		directory[len] = '\0';
	}
	return least;
}

uint64_t cgroup_memory_limit(void)
{
	return lowest(memory_max);
}

uint64_t cgroup_memory_left(void)
{
	return lowest(memory_left);
}
