/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads a recording and hands its records to a perf_consumer in time order. A recording is a
 * perf.data file (seekable or not) or perf's pipe format, by leakrec or perf record, or the text
 * that perf script printed of one (perf_script_text.h).
 *
 * Order: like perf, it holds back records until the second FINISHED_ROUND after them (or the end),
 * and sorts them by time, then by file position. A file's attributes, formats and build-ids are
 * known before its first record is delivered.
 *
 * Repeated records are delivered once: perf record reads a ring's end twice, and writes what comes
 * in between at the end of one round and again at the beginning of the next (Linux 6.1,
 * tools/perf/util/mmap.c, perf_mmap__push()).
 *
 * The input is hostile: every size and offset is checked, unknown record types are counted and
 * skipped, and each failure is reported once, with its offset.
 */
#ifndef LEAKTOOLS_PARSER_PERF_INPUT_H
#define LEAKTOOLS_PARSER_PERF_INPUT_H

#include "parser/perfdata/perf_input_stats.h"
#include "parser/records/perf_event_types.h"

/*
 * Reads all of @fd, which stays the caller's; messages call it @name. Of a truncated file the
 * readable part is read, with a warning and a flag in @ret_stats. Counts are added to @ret_stats,
 * which must be zero before the first file of a session; operations are numbered through all files.
 * Returns 0; a callback's value; -EINVAL (not a perf.data file, or corrupted: reported), -ENODATA
 * (no event of the schema: reported), -EXDEV (of another recording than the files before:
 * reported), -EIO, -ENOMEM.
 */
int perf_input_read(int fd, const char *name, const struct perf_consumer *consumer,
		    struct perf_input_stats *ret_stats);

#endif
