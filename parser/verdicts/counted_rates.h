/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Rates in windows, from calls that were counted all the time (call_counts.h). If all that a cause
 * allocates comes through one rarely called function, the calls of that function tell its rate
 * better than the few of its blocks in the sample. docs/verdicts.md has the method.
 */
#ifndef LEAKTOOLS_PARSER_COUNTED_RATES_H
#define LEAKTOOLS_PARSER_COUNTED_RATES_H

#include "parser/judging/verdict_types.h"
#include "parser/windows/call_counts.h"

/* What a cause has of the allocations through a function. */
struct counted_part {
	double allocations, of_all; /* in windows: the cause's, and all through the function */
};

/*
 * Takes verdict->rate from the calls if that makes its relative error smaller. Returns whether it
 * has. Pure arithmetic.
 */
bool counted_rate_improve(struct site_verdict *verdict, const struct call_sum *calls,
			  const struct counted_part *part);

/*
 * Improves the rates of the causes and of the sites, which are not sorted by cause yet. Returns 0
 * or -ENOMEM.
 */
int counted_rates_apply(struct verdicts *verdicts, const struct verdict_input *input);

#endif
