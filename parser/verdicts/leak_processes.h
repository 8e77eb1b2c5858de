/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds the processes and threads that hold listed blocks, of memory and of other resources. */
#ifndef LEAKTOOLS_PARSER_LEAK_PROCESSES_H
#define LEAKTOOLS_PARSER_LEAK_PROCESSES_H

#include "parser/verdicts/leak_report.h"

/* A process that allocated listed blocks, and what it holds of them. */
struct leak_process {
	pid_t pid, tid; /* @tid: one of its threads, for the name */
	/* leak_kinds_find() only: what its blocks are; NULL: memory. */
	const struct resource_kind *kind;
	uint64_t blocks, bytes; /* resources may have no bytes */
	/* The part whose verdict is a real leak: growth, overdue, burst. */
	uint64_t leaked_blocks, leaked_bytes;
	uint64_t end_ns; /* the last moment at which it held them, as leak_report_age_ns() has it */
};

/* Return 0 or -ENOMEM. The caller frees *@ret. The worst leakers come first. */
int leak_processes_find(const struct leak_report *report, struct leak_process **ret,
			size_t *ret_nr);

/*
 * What each process holds of each kind: an entry for each, by the process's number, memory first.
 */
int leak_kinds_find(const struct leak_report *report, struct leak_process **ret, size_t *ret_nr);

/* For leak_processes_at(): puts them in the order of their numbers. */
void leak_processes_sort(struct leak_process *processes, size_t nr);
/* The process @pid, which must be one of them. */
const struct leak_process *leak_processes_at(const struct leak_process *processes, size_t nr,
					     pid_t pid);

/* The threads, in the order of their numbers; their amounts are their own. */
int leak_threads_find(const struct leak_report *report, struct leak_process **ret, size_t *ret_nr);

#endif
