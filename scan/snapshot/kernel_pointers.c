/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "scan/snapshot/kernel_pointers.h"

#include "scan/snapshot/unseen_places.h"

#include "common/clock.h"
#include "common/proc/living_thread.h"
#include "common/proc/proc_file.h"
#include "common/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/kcmp.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MAX_POINTERS (1u << 22)

/* A descriptor, or a thread, that is gone is nothing that was not read. */
static void note_unread(struct snapshot *snapshot, int error, const char *what)
{
	if (error != ENOENT && error != ESRCH)
		snapshot->unread_pointers = what;
}

static int add(struct snapshot *snapshot, enum kernel_pointer_kind kind, int id, uint64_t value,
	       uint64_t end_ns)
{
	size_t nr = snapshot->nr_kernel_pointers;
	struct kernel_pointer *grown;

	if (clock_now_ns() >= end_ns)
		return -ETIMEDOUT;
	if (nr >= MAX_POINTERS) {
		snapshot->unread_pointers = "more than 4,194,304 pointers";
		return 0;
	}
	if ((nr & (nr - 1)) == 0) {
		grown = reallocarray(snapshot->kernel_pointers, nr ? nr * 2 : 1, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		snapshot->kernel_pointers = grown;
	}
	snapshot->kernel_pointers[nr] = (struct kernel_pointer){kind, id, value};
	snapshot->nr_kernel_pointers++;
	return 0;
}

bool kernel_pointer_parse_epoll(const char *line, uint64_t *ret)
{
	return sscanf(line, "tfd: %*d events: %*x data: %16" SCNx64, ret) == 1;
}

bool kernel_pointer_parse_timer(const char *line, uint64_t *ret)
{
	return sscanf(line, "signal: %*d/%16" SCNx64, ret) == 1;
}

static int read_epoll(struct snapshot *snapshot, pid_t thread, int fd, uint64_t end_ns)
{
	_cleanup_fclose_ FILE *info = NULL;
	char line[256], name[32];
	uint64_t value;
	int err = 0;

	snprintf(name, sizeof(name), "fdinfo/%d", fd);
	info = proc_file_open(thread, name);
	while (info && !err && fgets(line, sizeof(line), info))
		if (kernel_pointer_parse_epoll(line, &value))
			err = add(snapshot, KERNEL_POINTER_EPOLL, fd, value, end_ns);
	if (!info || ferror(info))
		note_unread(snapshot, errno, "epoll's data");
	return err;
}

static int read_descriptors(struct unseen_search *search, pid_t thread, uint64_t end_ns)
{
	struct snapshot *snapshot = search->snapshot;
	_cleanup_closedir_ DIR *dir = NULL;
	struct dirent *entry;
	char path[32], link[PATH_MAX];
	int err = 0;

	snprintf(path, sizeof(path), "/proc/%d/fd", thread);
	dir = opendir(path);
	if (!dir) {
		note_unread(snapshot, errno, "open files");
		return 0;
	}
	unseen_search_begin(search, thread, dirfd(dir));
	while (!err && (entry = readdir(dir))) {
		ssize_t len = readlinkat(dirfd(dir), entry->d_name, link, sizeof(link) - 1);
		int fd = (int)strtol(entry->d_name, NULL, 10);

		link[len > 0 ? len : 0] = '\0';
		/* A path of more than 4,095 bytes is that of a file or directory. */
		if (len < 0 && errno != ENAMETOOLONG && entry->d_name[0] != '.')
			note_unread(snapshot, errno, "open files");
		if (strcmp(link, "anon_inode:[eventpoll]") != 0)
			unseen_search_add(search, entry->d_name, link);
		else if (!unseen_search_knows(search, fd))
			err = read_epoll(snapshot, thread, fd, end_ns);
		if (!err && clock_now_ns() >= end_ns)
			err = -ETIMEDOUT;
	}
	return err;
}

static int read_timers(struct snapshot *snapshot, uint64_t end_ns)
{
	_cleanup_fclose_ FILE *timers = proc_file_open(living_thread(snapshot->pid), "timers");
	uint64_t value;
	char line[256];
	int id = 0, err = 0;

	while (timers && !err && fgets(line, sizeof(line), timers))
		if (sscanf(line, "ID: %d", &id) != 1 && kernel_pointer_parse_timer(line, &value))
			err = add(snapshot, KERNEL_POINTER_TIMER, id, value, end_ns);
	/* A kernel without CONFIG_CHECKPOINT_RESTORE has no such file. */
	if (!timers && errno == ENOENT)
		snapshot->unseen.timers = true;
	else if (!timers || ferror(timers))
		note_unread(snapshot, errno, "timers");
	return err;
}

/* True if the table of descriptors that @thread has needs no reading, or is not known. */
static bool is_read(struct unseen_search *search, pid_t thread)
{
	for (size_t i = 0; i < search->nr_tables; i++) {
		pid_t other = search->tables[i].thread;
		/* A process with one thread need not be asked where that is refused. */
		long order =
			other == thread ? 0 : syscall(SYS_kcmp, other, thread, KCMP_FILES, 0, 0);

		if (order < 0 && errno != ESRCH)
			search->snapshot->unseen.own_descriptors = true;
		if (order <= 0)
			return true;
	}
	/* One that has ended has none. */
	return !living_thread_has_memory(thread);
}

/* The descriptors of threads that do not have those of the first: after unshare(CLONE_FILES). */
static int read_other_tables(struct unseen_search *search, uint64_t end_ns)
{
	struct snapshot *snapshot = search->snapshot;
	_cleanup_closedir_ DIR *dir = NULL;
	struct dirent *entry;
	char path[32];
	int err = 0;

	snprintf(path, sizeof(path), "/proc/%d/task", snapshot->pid);
	dir = opendir(path);
	if (!dir)
		note_unread(snapshot, errno, "threads' open files");
	while (dir && !err && !snapshot->unseen.own_descriptors && (entry = readdir(dir))) {
		pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (tid > 0 && !is_read(search, tid)) {
			if (search->nr_tables < UNSEEN_MAX_TABLES)
				err = read_descriptors(search, tid, end_ns);
			else
				snapshot->unseen.own_descriptors = true;
		}
		if (!err && clock_now_ns() >= end_ns)
			err = -ETIMEDOUT;
	}
	return err;
}

int kernel_pointers_read(struct snapshot *snapshot, uint64_t end_ns)
{
	struct unseen_search search;
	int err;

	unseen_search_init(&search, snapshot);
	err = read_descriptors(&search, living_thread(snapshot->pid), end_ns);
	if (!err)
		err = read_other_tables(&search, end_ns);
	unseen_search_finish(&search);
	return err ? err : read_timers(snapshot, end_ns);
}
