/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The resources other than memory in the leaks text and in the summary. */
#ifndef LEAKTOOLS_REPORT_RESOURCE_REPORT_H
#define LEAKTOOLS_REPORT_RESOURCE_REPORT_H

#include "parser/verdicts/leak_report.h"
#include "report/text/stack_lines.h"

#include <stdio.h>

/* Whether the recording has any resource that the options select. */
bool resource_report_has_any(const struct leak_report *report);

/* Warns if the recording has no events of @kind (NULL: any kind) and lists the kinds it has. */
void resource_report_check_kind(const struct heap_tracker *heaps, const char *kind);

/* A comment line per kind: "# resource file: 120 given, 110 taken; 10 held". */
void resource_report_write_kinds(FILE *out, const struct leak_report *report);

/*
 * For the summary: "10 file handles in 1 stack, held at the end: 120 given, 110 taken". Returns the
 * number of lines.
 */
int resource_report_write_summary(FILE *out, const struct leak_report *report);

/*
 * The references of an object: " count=N refs=N unrefs=N" for its own line, then a "refs" line for
 * each stack. Both write nothing if the object has no reference count.
 */
void resource_report_write_counts(FILE *out, const struct leak_report *report,
				  const struct heap_block *block);
void resource_report_write_history(struct stack_lines *lines, const struct leak_report *report,
				   const struct heap_block *block);

/*
 * Merges the reference histories of a site's listed objects by stack, the largest surplus of added
 * references first. The caller frees *@ret, which is NULL without reference counts. Returns 0 or
 * -ENOMEM.
 */
int resource_report_merge_histories(const struct leak_report *report, const struct leak_site *site,
				    struct ref_history **ret, size_t *ret_nr);

#endif
