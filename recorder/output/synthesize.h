/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Records for what existed before recording began: threads, their names, and mappings of files.
 * They have time 0, as perf's do: before everything.
 */
#ifndef LEAKTOOLS_RECORDER_SYNTHESIZE_H
#define LEAKTOOLS_RECORDER_SYNTHESIZE_H

#include "recorder/output/build_ids.h"
#include "recorder/output/live_unwinder.h"
#include "recorder/output/perf_writer.h"

#include <sys/types.h>

/*
 * Writes FORK, COMM and MMAP2 records for process @pid, adds the build-ids of its mapped files to
 * @build_ids, and tells @unwinder, which may be NULL, of the mappings. Mappings that are not
 * executable are left out unless @with_data. It is no error if the process has ended. Returns 0 or
 * a negative errno.
 */
int synthesize_process(struct perf_writer *writer, pid_t pid, bool with_data,
		       struct build_ids *build_ids, struct live_unwinder *unwinder);

#endif
