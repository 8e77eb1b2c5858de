/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * leakparse --every: judges a recording again and again while it comes in, redraws the summary,
 * starts a command for each new cause, and says when a limit is exceeded.
 */
#ifndef LEAKTOOLS_REPORT_WATCH_H
#define LEAKTOOLS_REPORT_WATCH_H

#include "parser/verdicts/leak_report.h"
#include "report/text/summary_rows.h"
#include "report/watch/alerts.h"
#include "report/watch/cause_memory.h"

/* --fail-on-leak */
struct leak_limit {
	bool is_set;
	bool is_rate;	/* @bytes is in a second, of one cause */
	uint64_t bytes; /* more than that; 0: anything */
};

/* Remembers what was reported, also when this process has ended. */
struct watch_history {
	/* What it calls the cause; the caller frees it. Returns 0 or -ENOMEM. */
	int (*name)(const struct leak_report *report, const struct leak_cause *cause, char **ret);
	/* Whether an earlier process has reported the cause. */
	bool (*had)(void *context, const char *name);
	/* The command has succeeded for the cause. Takes @name over. Returns 0 or -ENOMEM. */
	int (*add)(void *context, char *name);
	void *context;
};

/* Set by the caller, except as said. */
struct watch {
	struct analysis *analysis;
	const struct leaks_options *leaks;
	struct leak_limit limit;
	bool draws; /* each tick writes a summary to standard output */
	struct summary_report_style style;
	const char *command_text;     /* --on-leak; NULL: none */
	size_t max_commands;	      /* that run at a time; 0: LEAK_COMMAND_MAX_RUNNING */
	struct watch_history history; /* of the command; without functions: none */

	bool is_exceeded; /* result: the limit was */

	/* The watch's own. */
	struct cause_memory *memory;
	struct alerts *alerts; /* NULL: there is no command */
	bool has_drawn;
	uint64_t nr_unreported; /* causes for which the command was not started */
};

/* Returns 0 or -ENOMEM, reported. */
int watch_init(struct watch *watch);
void watch_deinit(struct watch *watch);

/* The analysis_ticks.on_tick() of a watch. Ends the reading when the limit is exceeded. */
int watch_tick(void *context);

/*
 * Judges a report while the recording comes in: a leak is one if it was one the time before, too.
 * Returns 0 or -ENOMEM, not reported.
 */
int watch_judge(struct watch *watch, const struct leak_report *report);

/*
 * Judges the report at the end of the reading: a new cause, or one that exceeds a rate, need not be
 * seen twice then. Waits for the commands. Returns 0 or -ENOMEM, reported.
 */
int watch_finish(struct watch *watch, const struct leak_report *report);

/* Writes a summary to standard output, in the place of the one before. As summary_report_write().
 */
int watch_draw(struct watch *watch, const struct leak_report *report);

#endif
