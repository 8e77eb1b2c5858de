/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Joins causes whose sites always allocate together. */
#ifndef LEAKTOOLS_PARSER_CAUSE_TOGETHER_H
#define LEAKTOOLS_PARSER_CAUSE_TOGETHER_H

#include "parser/causes/cause_bags.h"

/* Joins those of finder->found that leak and have a caller in common. Errors go to finder->err. */
void cause_together_join(struct cause_finder *finder);

#endif
