/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a table of options says about itself: --help, phrases for messages, the list for shells. */
#ifndef LEAKTOOLS_COMMON_OPTIONS_HELP_H
#define LEAKTOOLS_COMMON_OPTIONS_HELP_H

#include "common/option_table.h"

#include <stdio.h>

/* The rows of every tool: --help and --version. */
enum { OPTIONS_HELP, OPTIONS_VERSION, OPTIONS_NR_COMMON };
extern const struct option_row options_common[OPTIONS_NR_COMMON];

/* All that --help prints. */
void options_help_write(FILE *out, const struct option_table *table);

/*
 * A line for each spelling of an option ("-s", "--size"), with tabs between five fields: the
 * spelling; whether it takes an argument ("none", "optional", "required"); what completes the
 * argument ("words", "list", "files", "directories", "pids", "nothing"); the words, or "-"; the
 * help.
 */
void options_help_write_table(FILE *out, const struct option_table *table);

/* What the argument may be, as in "a size like 4096 or 4k". */
void options_help_write_takes(FILE *out, const struct option_row *row);

#endif
