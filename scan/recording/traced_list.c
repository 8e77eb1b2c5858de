/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "scan/recording/traced_list.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* More than leakrec keeps. */
#define MAX_BLOCKS ((uint64_t)1 << 28)

static int read_list(int fd, const struct traced_list_head *head, struct traced_blocks *ret)
{
	size_t size = head->nr * sizeof(*ret->blocks), at = 0;

	if (head->nr > MAX_BLOCKS)
		return -E2BIG;
	ret->blocks = malloc(size + 1);
	if (!ret->blocks)
		return -ENOMEM;
	while (at < size) {
		ssize_t len =
			pread(fd, (char *)ret->blocks + at, size - at, (off_t)(sizeof(*head) + at));

		if (len <= 0)
			return len < 0 ? -errno : -EIO;
		at += (size_t)len;
	}
	ret->nr = head->nr;
	return 0;
}

int traced_list_ask(int fd, const struct snapshot *snapshot, struct traced_blocks *ret)
{
	uint64_t stopped_ns = snapshot->taken_ns - snapshot->pause_ns;
	struct traced_list_head head;
	char byte;

	printf(TRACED_LIST_ASKS "%" PRIu64 ".%09" PRIu64 "\n", stopped_ns / 1000000000,
	       stopped_ns % 1000000000);
	fflush(stdout);
	/* A list that another scan has asked for, which ended before it came, is older. */
	while (read(STDIN_FILENO, &byte, 1) == 1)
		if (pread(fd, &head, sizeof(head), 0) == sizeof(head) && head.held_ns >= stopped_ns)
			return read_list(fd, &head, ret);
	return 0;
}
