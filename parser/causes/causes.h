/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finds the causes of what is held. A site is one cause if its own verdict is clear. Sites join
 * where only their common caller shows what they are: a leak that is spread over many stacks, none
 * of which says much, or stacks that always allocate together. docs/verdicts.md has the method.
 */
#ifndef LEAKTOOLS_PARSER_CAUSES_H
#define LEAKTOOLS_PARSER_CAUSES_H

#include "parser/judging/judge.h"

/*
 * Joins judged sites. Afterwards site_verdict.cause of each site is its index in verdicts->causes;
 * the sites themselves are not sorted by cause yet. Sites that were judged with others take the
 * verdict of their cause. Returns 0 or -ENOMEM.
 */
int causes_find(struct verdicts *verdicts, const struct verdict_input *input, struct judge *judge);

#endif
