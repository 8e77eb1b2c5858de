/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the rows' stacks are called: looked up once for each, when it is first to be shown, or
 * filtered by. All text is escaped (diag_print_escaped()): nothing in it drives a terminal.
 */
#ifndef LEAKTOOLS_TOP_TOP_NAMES_H
#define LEAKTOOLS_TOP_TOP_NAMES_H

#include "report/names/named_stack.h"

#include <stdbool.h>

struct top_name {
	char *title;   /* "query_font < load_font < main", or NULL: not looked up yet */
	char **frames; /* "query_font  leaky_daemon.c:63", innermost first */
	size_t nr_frames;
};

struct top_names {
	struct stack_store *stacks; /* the caller's */
	struct name_pool *pool;
	struct top_name *names; /* by row */
	size_t nr;
};

/* Returns 0 or -ENOMEM. */
int top_names_init(struct top_names *names, struct stack_store *stacks);

/* True if @row has its name. */
bool top_names_has(const struct top_names *names, size_t row);

/* Looks up @row's, if that was not done yet: uses @stacks. Returns 0 or -ENOMEM. */
int top_names_load(struct top_names *names, size_t row, uint32_t stack_id);

/* The row's, or NULL. */
const struct top_name *top_names_get(const struct top_names *names, size_t row);

/* True if any of its frames has @text in it, whatever the case of letters. */
bool top_names_match(const struct top_names *names, size_t row, const char *text);

#endif
