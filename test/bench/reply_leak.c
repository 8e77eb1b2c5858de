/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * For LD_PRELOAD into a server that calls write() or writev() once for each reply: makes a record
 * of each, and forgets one of a thousand. The file $LEAK_TRUTH has their number and bytes.
 */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define LEAK_EVERY 1000

struct record {
	char text[200];
};

static int truth_fd = -1;
static atomic_ulong nr_replies, nr_lost;

__attribute__((constructor)) static void open_truth(void)
{
	const char *path = getenv("LEAK_TRUTH");

	if (path)
		truth_fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
}

__attribute__((noinline)) static struct record *make_record(const char *reply, size_t bytes)
{
	struct record *record = malloc(sizeof(*record));

	if (record)
		memcpy(record, reply, bytes < sizeof(*record) ? bytes : sizeof(*record));
	return record;
}

/* All others are freed at once. */
__attribute__((noinline)) static void forget_reply(const char *reply, size_t bytes)
{
	char text[64];
	unsigned long nr;
	int len;

	if (!make_record(reply, bytes))
		return;
	nr = ++nr_lost;
	len = snprintf(text, sizeof(text), "%lu %lu\n", nr, nr * sizeof(struct record));
	syscall(SYS_pwrite64, truth_fd, text, len, 0);
}

static void note_reply(const char *reply, size_t bytes)
{
	if (++nr_replies % LEAK_EVERY)
		free(make_record(reply, bytes));
	else
		forget_reply(reply, bytes);
}

ssize_t write(int fd, const void *data, size_t bytes)
{
	note_reply(data, bytes);
	return syscall(SYS_write, fd, data, bytes);
}

ssize_t writev(int fd, const struct iovec *parts, int nr)
{
	if (nr > 0)
		note_reply(parts->iov_base, parts->iov_len);
	return syscall(SYS_writev, fd, parts, nr);
}
