/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Joins causes that are one function's leak, which several distant callers call. */
#ifndef LEAKTOOLS_PARSER_CAUSE_CALLEE_H
#define LEAKTOOLS_PARSER_CAUSE_CALLEE_H

#include "parser/causes/cause_bags.h"

#define CAUSE_MAX_CALLEES 16 /* that are found; each may add one to finder->found */

/*
 * Takes sites that leak inside of one function from the causes that they belong to and makes them
 * one cause, for each such function. docs/verdicts.md, "Causes", has the conditions. The members
 * are sorted by path, and their functions are numbered from 0. Errors go to finder->err.
 */
void cause_callee_join(struct cause_finder *finder);

#endif
