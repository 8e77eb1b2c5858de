/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Advice on a recording of poor quality: each line names a problem and its remedy.
 */
#ifndef LEAKTOOLS_REPORT_INPUT_ADVICE_H
#define LEAKTOOLS_REPORT_INPUT_ADVICE_H

#include "parser/verdicts/leak_report.h"

#define INPUT_ADVICE_MAX   8
#define INPUT_ADVICE_BYTES 512

/* Where to read about events that may be missing: analysis.unguarded_tasks. */
#define INPUT_ADVICE_UNGUARDED "leakrec's warnings say why"
/* What analysis.may_miss means without them. */
#define INPUT_ADVICE_FIRST_CALLS                                                                   \
	"first calls of forked processes or of files loaded meanwhile may be missing: leakrec's "  \
	"warnings say why"

struct input_advice {
	char lines[INPUT_ADVICE_MAX]
		  [INPUT_ADVICE_BYTES]; /* contains names of the target: escape it */
	size_t nr;
};

/* The remedy for lost events. */
const char *input_advice_on_losses(const struct analysis *analysis);

/* Why stacks end early, and the remedy if there is one. */
const char *input_advice_on_short_stacks(const struct analysis *analysis);

/* What contradicts that the recording is whole and in order. */
void input_advice_on_recording(const struct analysis *analysis, struct input_advice *ret);

/* The same, and what the first stacks lack. Examines the first listed stacks, and symbolises their
 * frames. */
void input_advice_find(const struct leak_report *report, struct input_advice *ret);

#endif
