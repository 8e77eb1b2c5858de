/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds the processes that hold listed blocks, the worst leakers first. */
#ifndef LEAKTOOLS_PARSER_LEAK_PROCESSES_H
#define LEAKTOOLS_PARSER_LEAK_PROCESSES_H

#include "parser/verdicts/leak_report.h"

/*
 * A process that allocated listed blocks (memory and other resources), and what it holds of them.
 */
struct leak_process {
	pid_t pid, tid; /* @tid: one of its threads, for the name */
	uint64_t blocks, bytes;
	/* The part with the verdict of a real leak: growth, overdue, burst. */
	uint64_t leaked_blocks, leaked_bytes;
};

/* Returns 0 or -ENOMEM. The caller frees *@ret. */
int leak_processes_find(const struct leak_report *report, struct leak_process **ret,
			size_t *ret_nr);

#endif
