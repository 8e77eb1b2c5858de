/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which of a recording's processes hold what is listed, those that leak most first. */
#ifndef LEAKTOOLS_PARSER_LEAK_PROCESSES_H
#define LEAKTOOLS_PARSER_LEAK_PROCESSES_H

#include "parser/verdicts/leak_report.h"

/* What a process that allocated them holds of the listed blocks, memory and other resources. */
struct leak_process {
	pid_t pid, tid; /* a thread of it, for its name */
	uint64_t blocks, bytes;
	/* Of these, what real leaks have for a verdict: growth, overdue, burst. */
	uint64_t leaked_blocks, leaked_bytes;
};

/* Returns 0 or -ENOMEM. The caller frees *@ret. */
int leak_processes_find(const struct leak_report *report, struct leak_process **ret,
			size_t *ret_nr);

#endif
