/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads ELF files that others own, and plans their probes. A process without privileges does it
 * (common/sandbox/sandbox.h): what a file makes it do costs the probes of the same owner's files.
 */
#ifndef LEAKTOOLS_PROBES_FILE_ANALYSIS_H
#define LEAKTOOLS_PROBES_FILE_ANALYSIS_H

#include "probes/plan/findings_message.h"
#include "probes/plan/probe_set.h"

#include "common/proc/mapped_files.h"

/*
 * Says what is at registered probes: fills @ret for each of @nr files. A file that cannot be read
 * is reported. Returns as file_analysis_run(). Release @ret with file_answers_deinit() in any case.
 */
int file_analysis_answer(const struct mapped_file *files, const struct file_question *questions,
			 size_t nr, struct file_answer *ret);

/*
 * Analyses @nr files, fills @ret of each, and appends the probes of allocators and those for USDT
 * probes to @set; NULL: nothing is planned. A file that cannot be analysed is reported and left
 * out. Returns 0 or a negative errno, reported; -EINTR, not reported: a signal is pending that ends
 * this process.
 */
int file_analysis_run(const struct mapped_file *files, size_t nr, struct probe_set *set,
		      struct file_findings *ret);

#endif
