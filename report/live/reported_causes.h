/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The causes for which the command of leakrec --on-leak has succeeded, in a file of the directory
 * of
 * --live: a recorder or a program that is started again does not report them again. A cause is
 * known by what reports name it after, as in the metrics: a function and its module. While a
 * recorder runs, it tells causes apart by their stacks (report/watch/cause_memory.h).
 */
#ifndef LEAKTOOLS_REPORT_REPORTED_CAUSES_H
#define LEAKTOOLS_REPORT_REPORTED_CAUSES_H

#include "parser/verdicts/leak_report.h"

#define REPORTED_CAUSES_NAME "reported" /* in the directory of --live */
/* The file is read up to there, and causes beyond these are forgotten, the first ones first. */
#define REPORTED_CAUSES_MAX_BYTES ((size_t)1 << 20)
#define REPORTED_CAUSES_MAX	  1024

struct reported_causes;

/*
 * Reads the file (live_services.h). A missing or unreadable file, which is reported, has no causes.
 * Returns 0 or -ENOMEM. They are never freed.
 */
int reported_causes_create(struct reported_causes **ret);

/* The cause's line in the file; the caller frees it. Returns 0 or -ENOMEM. */
int reported_causes_name(const struct leak_report *report, const struct leak_cause *cause,
			 char **ret);

/* Whether the file had the cause when it was read. */
bool reported_causes_had(const struct reported_causes *causes, const char *name);

/* Adds the cause to the file. Takes @name over. Returns 0 or a negative errno, not reported. */
int reported_causes_add(struct reported_causes *causes, char *name);

/* Writes the file, if it could not be written when a cause was added. Returns what that returns. */
int reported_causes_write(struct reported_causes *causes);

#endif
