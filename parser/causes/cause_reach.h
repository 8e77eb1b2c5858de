/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Splits causes by what a scan has said: what is proven lost is no matter of what is not. */
#ifndef LEAKTOOLS_PARSER_CAUSE_REACH_H
#define LEAKTOOLS_PARSER_CAUSE_REACH_H

#include "parser/causes/cause_bags.h"

/*
 * Splits those of finder->found that have sites with lost blocks and others of which none is lost
 * and some are reachable. Errors go to finder->err.
 */
void cause_reach_split(struct cause_finder *finder);

#endif
