/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `leakparse --summary`: one screen that tells a person what leaks, and where. */
#ifndef LEAKTOOLS_PARSER_LEAK_SCREEN_H
#define LEAKTOOLS_PARSER_LEAK_SCREEN_H

#include "parser/leak_report.h"

#include <stdio.h>

/*
 * Writes it. @utf8: pictures may be made of other than ASCII. Returns 0 or -EIO, not reported.
 */
int leak_screen_write(FILE *out, const struct leak_report *report, bool utf8);

#endif
