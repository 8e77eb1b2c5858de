/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sizes, times and verdicts as people say them. All write to @out and report nothing. */
#ifndef LEAKTOOLS_PARSER_LEAK_WORDS_H
#define LEAKTOOLS_PARSER_LEAK_WORDS_H

#include "parser/leak_report.h"

#include <stdio.h>

/* "3.2 MiB", "512 bytes" */
void leak_words_bytes(FILE *out, double bytes);
/* "21 us", "3.9 s", "2.1 h" */
void leak_words_duration(FILE *out, double seconds);

/* "firm", or "doubtful:lost,truncated" */
void leak_words_certainty(FILE *out, unsigned int doubts);

/* What the verdict means: "keeps coming and stays". */
const char *leak_words_meaning(enum verdict verdict);

/* "+30.1 +-2.5 blocks/s, +90.3 KiB/s +-7.6 KiB/s" */
void leak_words_rate(FILE *out, const struct growth_rate *rate);

/* "577 of 720 were freed, half within 21 us, 99 % within 60 us; the oldest is held for 3.9 s" */
void leak_words_lifetimes(FILE *out, const struct site_verdict *verdict);

#endif
