/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads the rows of a file that census_json.h wrote earlier. It may have been changed since: what
 * differs from what leakscan writes, line by line, is refused.
 */
#ifndef LEAKTOOLS_SCAN_CENSUS_FILE_H
#define LEAKTOOLS_SCAN_CENSUS_FILE_H

#include <stdbool.h>
#include <stdint.h>

struct census_file {
	const char *path;
	int fd;
	uint64_t size_bytes;
	/* Of its process; 0: unknown. */
	uint64_t pid, start_ticks, taken_s;
	bool is_whole; /* its heap */
};

/* Blocks of one size and type. */
struct census_file_row {
	uint64_t size_bytes, nr;
	const char *type; /* as it stands in the file: a JSON string, or null */
};

/*
 * Opens @path, which is not copied, and reads the first line: numbers only, so this may be done
 * with privileges. Returns 0 or a negative errno, reported.
 */
int census_file_open(struct census_file *ret, const char *path);
void census_file_close(struct census_file *file);

/*
 * Calls @on_row for each row, until it returns not 0. Returns that, 0, or a negative errno,
 * reported.
 */
int census_file_read(const struct census_file *file,
		     int (*on_row)(void *context, const struct census_file_row *row),
		     void *context);

#endif
