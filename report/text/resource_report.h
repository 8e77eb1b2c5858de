/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the reports say of resources that are no memory: in their own words, and counted apart. */
#ifndef LEAKTOOLS_REPORT_RESOURCE_REPORT_H
#define LEAKTOOLS_REPORT_RESOURCE_REPORT_H

#include "parser/verdicts/leak_report.h"

#include <stdio.h>

/* Whether any resource is among what the recording tells of, and is wanted. */
bool resource_report_has_any(const struct leak_report *report);

/* Warns if nothing of the @kind that was asked for (NULL: all) has happened, and tells what has. */
void resource_report_check_kind(const struct heap_tracker *heaps, const char *kind);

/* A comment for each kind of resource, "# resource file: 120 given, 110 taken, 10 held". */
void resource_report_write_kinds(FILE *out, const struct leak_report *report);

/* For a terminal: "10 file handles held at the end, in 1 stack (120 given, 110 taken)". Returns
 * the lines. */
int resource_report_write_screen(FILE *out, const struct leak_report *report);

/*
 * The history of an object's references, each stack once, " refs=N unrefs=N" of all of them being
 * part of the object's own line: lines "refs", and the frames. Nothing where none are counted.
 */
void resource_report_write_counts(FILE *out, const struct leak_report *report,
				  const struct heap_block *block);
void resource_report_write_history(FILE *out, const struct leak_report *report,
				   const struct heap_block *block);

/*
 * The histories of a site's listed objects, merged by stacks, those that added most first. The
 * caller frees *@ret, of *@ret_nr; NULL where no references are counted. Returns 0 or -ENOMEM.
 */
int resource_report_merge_histories(const struct leak_report *report, const struct leak_site *site,
				    struct ref_history **ret, size_t *ret_nr);

#endif
