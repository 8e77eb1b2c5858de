/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/modules/copy_table.h"

#include "common/diag.h"
#include "common/hash.h"
#include "common/scope.h"
#include "unwind/modules/frames_copy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KEPT_FOR_COPY 256 /* bytes, besides its own */

/* A file, as it was then. Whoever writes to it gives it another time. */
struct copied_file {
	uint64_t device, inode, size, seconds, nanoseconds;
};

struct known_copy {
	struct copied_file file;
	int fd; /* negative: it cannot be copied */
	UT_hash_handle hh;
};

/* Of one file only: any user can make many. */
static void warn(struct copy_table *table, const char *path, int err)
{
	char limit[64];

	if (table->has_warned || err == -ENOEXEC)
		return;
	table->has_warned = true;
	snprintf(limit, sizeof(limit), "it has more than %u MiB", FRAMES_COPY_MAX_BYTES >> 20);
	diag_warn("%s: cannot copy its call frame information: %s; stacks may end there", path,
		  err == -E2BIG ? limit : strerror(-err));
}

static unsigned int hash_of(const struct copied_file *file)
{
	const uint64_t words[] = {file->device, file->inode, file->size, file->seconds,
				  file->nanoseconds};

	return (unsigned int)hash_words(words, ARRAY_SIZE(words), hash_seed());
}

static struct known_copy *add_copy(struct copy_table *table, int fd, const struct copied_file *file,
				   const char *path)
{
	struct known_copy *known = calloc(1, sizeof(*known));
	uint64_t bytes = 0;

	if (!known)
		return NULL;
	known->file = *file;
	HASH_ADD_BYHASHVALUE(hh, table->by_file, file, sizeof(known->file), hash_of(file), known);
	if (!hash_added(known)) {
		free(known);
		return NULL;
	}
	known->fd = frames_copy(fd, &bytes);
	if (known->fd < 0)
		warn(table, path, known->fd);
	table->bytes += KEPT_FOR_COPY + bytes;
	return known;
}

int copy_table_get(struct copy_table *table, int fd, const struct stat *st, const char *path)
{
	const struct copied_file file = {
		.device = st->st_dev,
		.inode = st->st_ino,
		.size = (uint64_t)st->st_size,
		.seconds = (uint64_t)st->st_ctim.tv_sec,
		.nanoseconds = (uint64_t)st->st_ctim.tv_nsec,
	};
	struct known_copy *known;

	HASH_FIND_BYHASHVALUE(hh, table->by_file, &file, sizeof(file), hash_of(&file), known);
	if (!known)
		known = add_copy(table, fd, &file, path);
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
