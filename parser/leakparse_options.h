/* SPDX-License-Identifier: GPL-2.0-or-later */
/* leakparse's command line. */
#ifndef LEAKTOOLS_PARSER_LEAKPARSE_OPTIONS_H
#define LEAKTOOLS_PARSER_LEAKPARSE_OPTIONS_H

#include "parser/leaks_writer.h"

/* Zero it before it is filled; it points into itself and into argv. */
struct leakparse_options {
	const char *input; /* NULL: standard input */
	struct leaks_options leaks;
	struct size_range size;
	struct stack_store_options stacks;
};

/* Returns 0, -EINVAL after saying what is wrong, or 1 if --help or --version was all. */
int leakparse_options_parse(int argc, char **argv, struct leakparse_options *options);

#endif
