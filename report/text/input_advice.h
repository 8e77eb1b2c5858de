/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a recording lacks that its user can do something about: each in a line that says what to do.
 */
#ifndef LEAKTOOLS_REPORT_INPUT_ADVICE_H
#define LEAKTOOLS_REPORT_INPUT_ADVICE_H

#include "parser/verdicts/leak_report.h"

#define INPUT_ADVICE_MAX   2
#define INPUT_ADVICE_BYTES 512

/* What to do about lost events. */
#define INPUT_ADVICE_LOST                                                                          \
	"larger rings (-m) lose fewer, leakrec without --on-overload drop next to none"

/* About those that may be missing: analysis.unguarded_tasks. */
#define INPUT_ADVICE_UNGUARDED "leakrec's warnings say why"

struct input_advice {
	char lines[INPUT_ADVICE_MAX][INPUT_ADVICE_BYTES]; /* may hold anything: to be escaped */
	size_t nr;
};

/* Looks at the stacks of the listed blocks, not more than some. It names their frames. */
void input_advice_find(const struct leak_report *report, struct input_advice *ret);

#endif
