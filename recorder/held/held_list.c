/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/held/held_list.h"

#include "common/schema/traced_list.h"
#include "common/scope.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static int write_at(int fd, const void *bytes, size_t size, off_t at)
{
	while (size > 0) {
		ssize_t len = pwrite(fd, bytes, size, at);

		if (len < 0 && errno != EINTR)
			return -errno;
		if (len > 0) {
			bytes = (const char *)bytes + len;
			size -= (size_t)len;
			at += len;
		}
	}
	return 0;
}

int held_list_write(int fd, const struct held_blocks *held, pid_t pid, uint64_t held_ns)
{
	struct traced_list_head head = {.held_ns = held_ns};
	_cleanup_free_ struct traced_block *blocks =
		calloc(held_blocks_nr(held, pid) + 1, sizeof(*blocks));
	const struct held_block *block;
	size_t at = 0;
	int err;

	if (!blocks)
		return -ENOMEM;
	while ((block = held_blocks_next(held, pid, &at)))
		if (block->time_ns <= held_ns)
			blocks[head.nr++] =
				(struct traced_block){block->address, block->size_bytes};
	err = write_at(fd, blocks, head.nr * sizeof(*blocks), sizeof(head));
	return err ? err : write_at(fd, &head, sizeof(head), 0);
}
