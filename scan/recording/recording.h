/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A recording of the process that is scanned, which ended before the scan. The file is hostile: the
 * process that has the rights to scan only opens it.
 */
#ifndef LEAKTOOLS_SCAN_RECORDING_H
#define LEAKTOOLS_SCAN_RECORDING_H

#include "parser/analysis/analysis.h"
#include "scan/snapshot/snapshot.h"

struct recording_file {
	const char *path;
	int fd;
	bool is_read;
	struct analysis analysis; /* then; of this process only */
};

/* Opens @path, which is not copied. Returns 0 or a negative errno, reported. */
int recording_file_open(struct recording_file *ret, const char *path);
void recording_file_close(struct recording_file *file);

/*
 * Reads the recording once, without privileges, and checks that it is of the process of @snapshot.
 * Returns 0 or a negative errno, reported.
 */
int recording_read(struct recording_file *file, const struct snapshot *snapshot);

#endif
