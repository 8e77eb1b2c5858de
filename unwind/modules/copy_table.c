/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/modules/copy_table.h"

#include "common/hash.h"
#include "unwind/modules/frames_copy.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#define KEPT_FOR_COPY 256 /* bytes, besides its own */

/* A file, as it was then. Whoever writes to it gives it another time. */
struct copied_file {
	uint64_t device, inode, size, seconds, nanoseconds;
};

struct known_copy {
	struct copied_file file;
	int fd; /* -1: it cannot be copied */
	UT_hash_handle hh;
};

static struct known_copy *add_copy(struct copy_table *table, int fd, const struct copied_file *file)
{
	struct known_copy *known = calloc(1, sizeof(*known));
	uint64_t bytes = 0;

	if (!known)
		return NULL;
	known->file = *file;
	HASH_ADD(hh, table->by_file, file, sizeof(known->file), known);
	if (!hash_added(known)) {
		free(known);
		return NULL;
	}
	known->fd = frames_copy(fd, &bytes);
	table->bytes += KEPT_FOR_COPY + bytes;
	return known;
}

int copy_table_get(struct copy_table *table, int fd, const struct stat *st)
{
	const struct copied_file file = {
		.device = st->st_dev,
		.inode = st->st_ino,
		.size = (uint64_t)st->st_size,
		.seconds = (uint64_t)st->st_ctim.tv_sec,
		.nanoseconds = (uint64_t)st->st_ctim.tv_nsec,
	};
	struct known_copy *known;

	HASH_FIND(hh, table->by_file, &file, sizeof(file), known);
	if (!known)
		known = add_copy(table, fd, &file);
	return known && known->fd >= 0 ? fcntl(known->fd, F_DUPFD_CLOEXEC, 0) : -1;
}

void copy_table_empty(struct copy_table *table)
{
	struct known_copy *known, *next;

	HASH_ITER (hh, table->by_file, known, next) {
		HASH_DELETE(hh, table->by_file, known);
		if (known->fd >= 0)
			close(known->fd);
		free(known);
	}
	table->bytes = 0;
	table->epoch++;
}
