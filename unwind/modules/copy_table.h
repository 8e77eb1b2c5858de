/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The copies of files that others than root can change (frames_copy.h): one of each file, whoever
 * unwinds with it and however often libdwfl opens it.
 */
#ifndef LEAKTOOLS_UNWIND_COPY_TABLE_H
#define LEAKTOOLS_UNWIND_COPY_TABLE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

struct known_copy;

/* Zeroed, it is empty. */
struct copy_table {
	struct known_copy *by_file;
	uint64_t bytes; /* of all copies */
	uint64_t epoch; /* counts how often it was emptied */
	bool has_warned;
};

/*
 * Returns a descriptor, which the caller closes, of the copy of the file at @fd, of which @st was
 * read; or -1 if there is none. The first time, a warning names the file @path, and says why.
 */
int copy_table_get(struct copy_table *table, int fd, const struct stat *st, const char *path);

/*
 * Forgets all copies. They take memory until those who have descriptors of them have closed these,
 * too; a new @table->epoch tells them.
 */
void copy_table_empty(struct copy_table *table);

#endif
