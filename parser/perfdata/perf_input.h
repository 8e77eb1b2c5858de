/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads a recording: a perf.data file (seekable or not) or perf's pipe format, by leakrec or by
 * perf record, and hands its records to a perf_consumer in time order. Or the text that perf script
 * printed of one (perf_script_text.h).
 *
 * Order: records are held back until the second FINISHED_ROUND after them (or the end), as perf
 * does, and sorted by time, ties by file position. A file's attributes, formats and build-ids
 * are known before its first record is delivered.
 *
 * What perf record wrote twice is handed on once: it looks at a ring's end twice, and writes what
 * comes in between at the end of one round and again at the beginning of the next (Linux 6.1,
 * tools/perf/util/mmap.c, perf_mmap__push()).
 *
 * The input is hostile: every size and offset is checked, unknown record types are counted and
 * skipped, and each failure is reported once with the offset it was met at.
 */
#ifndef LEAKTOOLS_PARSER_PERF_INPUT_H
#define LEAKTOOLS_PARSER_PERF_INPUT_H

#include "parser/perfdata/perf_input_stats.h"
#include "parser/records/perf_event_types.h"

/*
 * Reads all of @fd, which stays the caller's; @name stands for it in messages. A file that ends
 * too early is read as far as it goes, reported as a warning, and marked in @ret_stats, to which it
 * adds: it is zero before the first file of a session, and numbers events through all. Returns 0;
 * a callback's value; -EINVAL (not a perf.data file, or corrupted: reported), -ENODATA (no event
 * that the schema knows among its attributes: reported), -EIO, -ENOMEM.
 */
int perf_input_read(int fd, const char *name, const struct perf_consumer *consumer,
		    struct perf_input_stats *ret_stats);

#endif
