/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Command lines from tables. Each tool describes its options once, in a struct option_table; the
 * parser, the messages about bad usage, --help and the shell's completions come from that table.
 * Tests compare it with the manual pages (test/integration/tools/help.bats).
 *
 * Every tool has -h (--help) and -V (--version); a table does not list them. `TOOL --options-table`
 * prints the table itself, for the completions of shells (completions/).
 */
#ifndef LEAKTOOLS_COMMON_OPTIONS_H
#define LEAKTOOLS_COMMON_OPTIONS_H

#include "common/option_table.h"

struct option_result {
	uint64_t given; /* bit i: the option of row i was given */
	char **operands;
	size_t nr_operands;
};

/*
 * Parses the command line into the fields of @options. Returns 0; 1 if --help or --version was
 * answered; or a negative errno, reported: -EINVAL is bad usage.
 */
int options_parse(const struct option_table *table, int argc, char **argv, void *options,
		  struct option_result *ret);

/*
 * The exit status of a tool whose options_parse() returned @err, not 0. Flushes standard output;
 * reports it if that fails.
 */
int options_exit_status(int err);

/* Reports "--NAME takes ..., not TEXT". Returns -EINVAL. */
int options_reject(const struct option_row *row, const char *text);

/* The first row that was given and is in one of @groups; NULL: none. */
const struct option_row *options_given_in(const struct option_table *table,
					  const struct option_result *result, unsigned int groups);

/* The first row that was given and is in none of @groups; NULL: none. */
const struct option_row *options_given_outside(const struct option_table *table,
					       const struct option_result *result,
					       unsigned int groups);

/* True if the option of that long name was given. */
bool options_has(const struct option_table *table, const struct option_result *result,
		 const char *name);

#endif
