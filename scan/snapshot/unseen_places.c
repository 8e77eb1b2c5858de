/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "scan/snapshot/unseen_places.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

/* Of Linux 6.9 */
#ifndef PIDFD_THREAD
#define PIDFD_THREAD O_EXCL
#endif

/* The process stands still meanwhile: a look takes some microseconds. */
#define MAX_LOOKS 4096

struct pipe_end {
	unsigned long long pipe;
	int pid_fd, fd;
	bool can_read, can_write;
};

void unseen_search_init(struct unseen_search *ret, struct snapshot *snapshot)
{
	*ret = (struct unseen_search){.snapshot = snapshot};
}

void unseen_search_begin(struct unseen_search *search, pid_t thread, int dir_fd)
{
	struct descriptor_table *table = &search->tables[search->nr_tables++];
	unsigned flags = thread == search->snapshot->pid ? 0 : PIDFD_THREAD;

	*table = (struct descriptor_table){thread, (int)syscall(SYS_pidfd_open, thread, flags)};
	search->dir_fd = dir_fd;
	if (table->pid_fd < 0 && errno != ESRCH)
		search->snapshot->unseen.pipes_and_sockets = true;
}

bool unseen_search_knows(const struct unseen_search *search, int fd)
{
	const struct descriptor_table *last = &search->tables[search->nr_tables - 1];

	for (const struct descriptor_table *table = search->tables; table < last; table++)
		if (syscall(SYS_kcmp, table->thread, last->thread, KCMP_FILE, fd, fd) == 0)
			return true;
	return false;
}

/*
 * The process's open file @fd, not opened again; -1: none. Only for pipes and sockets of this
 * machine: with cgroup v1, the kernel takes a socket's class for packets from who gets it so
 * (net/core/scm.c and fs/file.c of Linux 6.1, __receive_sock()).
 */
static int share(const struct unseen_search *search, int pid_fd, int fd)
{
	int shared = pid_fd < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, pid_fd, fd, 0);

	/* Docker's default profile allows it only with CAP_SYS_PTRACE. */
	if (pid_fd >= 0 && shared < 0 && errno != EBADF && errno != ESRCH)
		search->snapshot->unseen.pipes_and_sockets = true;
	return shared;
}

/* To ask for the number of bytes would wait for a lock, which others may hold for ever. */
static bool pipe_has_bytes(const struct unseen_search *search, const struct pipe_end *reader)
{
	struct pollfd end = {
		.fd = share(search, reader->pid_fd, reader->fd),
		.events = POLLIN,
	};
	bool has_bytes;

	if (end.fd < 0)
		return false;
	has_bytes = poll(&end, 1, 0) > 0 && end.revents & POLLIN;
	close(end.fd);
	return has_bytes;
}

/* Or by one that has ended: a daemon has what its parent made. */
static bool made_by_process(const struct unseen_search *search, pid_t pid)
{
	return pid == search->snapshot->pid || (kill(pid, 0) < 0 && errno == ESRCH);
}

/* True if the process has made both ends, and what it has sent to this one is still there. */
static bool socket_has_bytes(const struct unseen_search *search, int fd)
{
	int shared = share(search, search->tables[search->nr_tables - 1].pid_fd, fd), nr_bytes = 0;
	struct ucred peer = {0};
	socklen_t size = sizeof(peer);
	bool has_bytes;

	if (shared < 0)
		return false;
	has_bytes = getsockopt(shared, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
		    made_by_process(search, peer.pid) && ioctl(shared, FIONREAD, &nr_bytes) == 0 &&
		    nr_bytes > 0;
	close(shared);
	return has_bytes;
}

/* The name is "UNIX" or "UNIX-STREAM" (net/socket.c, sockfs_xattr_handlers). */
static bool is_unix_socket(const struct unseen_search *search, const char *name)
{
	char path[64], protocol[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", search->dir_fd, name);
	return getxattr(path, "system.sockprotoname", protocol, sizeof(protocol)) >= 4 &&
	       memcmp(protocol, "UNIX", 4) == 0;
}

static void add_pipe_end(struct unseen_search *search, const char *name, unsigned long long pipe)
{
	struct stat link;

	if (!search->ends)
		search->ends = calloc(MAX_LOOKS, sizeof(*search->ends));
	/* The link's rights are those of the open file (fs/proc/fd.c, tid_fd_update_inode()). */
	if (!search->ends || fstatat(search->dir_fd, name, &link, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	search->ends[search->nr_ends++] = (struct pipe_end){
		pipe,
		search->tables[search->nr_tables - 1].pid_fd,
		(int)strtol(name, NULL, 10),
		link.st_mode & S_IRUSR,
		link.st_mode & S_IWUSR,
	};
}

/* Only by the name: a look at a file may wait for its server. A chroot has a /dev of its own. */
static bool find_by_name(struct unseen_places *unseen, const char *link, size_t **ret_count)
{
	if (strcmp(link, "anon_inode:[io_uring]") == 0)
		*ret_count = &unseen->nr_io_urings;
	else if (strstr(link, "/dev/fuse") || strstr(link, "/dev/cuse"))
		*ret_count = &unseen->nr_fuse;
	else if (strstr(link, "/dev/dri/card"))
		*ret_count = &unseen->nr_displays;
	else if (strstr(link, "/dev/bus/usb/"))
		*ret_count = &unseen->nr_usb;
	else
		return false;
	return true;
}

void unseen_search_add(struct unseen_search *search, const char *name, const char *link)
{
	struct unseen_places *unseen = &search->snapshot->unseen;
	size_t *count = NULL;
	bool has_name = find_by_name(unseen, link, &count);
	bool is_socket = strncmp(link, "socket:[", 8) == 0;
	int fd = (int)strtol(name, NULL, 10);
	unsigned long long pipe = 0;

	if (!has_name && !is_socket && sscanf(link, "pipe:[%llu]", &pipe) != 1)
		return;
	if ((!has_name && search->nr_looks >= MAX_LOOKS) || unseen_search_knows(search, fd))
		return;
	search->nr_looks += !has_name;
	if (has_name)
		++*count;
	else if (!is_socket)
		add_pipe_end(search, name, pipe);
	else if (is_unix_socket(search, name) && socket_has_bytes(search, fd))
		unseen->nr_sockets++;
}

static int compare_ends(const void *a, const void *b)
{
	const struct pipe_end *x = a, *y = b;

	return x->pipe < y->pipe ? -1 : x->pipe > y->pipe;
}

void unseen_search_finish(struct unseen_search *search)
{
	if (search->nr_ends)
		qsort(search->ends, search->nr_ends, sizeof(*search->ends), compare_ends);
	for (size_t i = 0, next; i < search->nr_ends; i = next) {
		const struct pipe_end *ends = search->ends, *reader = NULL;
		bool can_write = false;

		for (next = i; next < search->nr_ends && ends[next].pipe == ends[i].pipe; next++) {
			can_write |= ends[next].can_write;
			if (ends[next].can_read)
				reader = &ends[next];
		}
		if (can_write && reader && pipe_has_bytes(search, reader))
			search->snapshot->unseen.nr_pipes++;
	}
	free(search->ends);
	for (size_t i = 0; i < search->nr_tables; i++)
		if (search->tables[i].pid_fd >= 0)
			close(search->tables[i].pid_fd);
}
