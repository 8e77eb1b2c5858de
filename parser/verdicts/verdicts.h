/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Judges the held blocks: the verdicts of verdict_types.h. docs/verdicts.md has the method. */
#ifndef LEAKTOOLS_PARSER_VERDICTS_H
#define LEAKTOOLS_PARSER_VERDICTS_H

#include "parser/judging/verdict_types.h"

/* Judges all held blocks. Returns 0, -ENOMEM, or -E2BIG for more than 2^32 blocks. */
int verdicts_init(struct verdicts *verdicts, const struct verdict_input *input);
void verdicts_deinit(struct verdicts *verdicts);

#endif
