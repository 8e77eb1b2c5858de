/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The names of the rows' stacks. Each stack is symbolised once, when it is first shown or filtered.
 * All text is escaped (diag_print_escaped()), so it cannot control the terminal.
 */
#ifndef LEAKTOOLS_TOP_TOP_NAMES_H
#define LEAKTOOLS_TOP_TOP_NAMES_H

#include "parser/statistics/site_stats.h"
#include "parser/statistics/own_wrappers.h"
#include "report/names/named_stack.h"

#include <stdbool.h>

struct top_name {
	struct named_stack stack;
	size_t first;  /* the frame that the row is named after */
	char **frames; /* "query_font  leaky_daemon.c:63", innermost first; NULL: not yet loaded */
	size_t nr_frames;
};

struct top_names {
	struct stack_store *stacks; /* owned by the caller */
	struct name_pool *pool;
	struct top_name *names; /* by row */
	size_t nr;
	struct own_wrappers wrappers;
	uint64_t next_search_ns; /* for these */
};

/* Returns 0 or -ENOMEM. */
int top_names_init(struct top_names *names, struct stack_store *stacks);

/*
 * Looks for the program's own wrappers from time to time, and names the rows after other frames if
 * need be. Sites are in the order of rows. Returns 0 or -ENOMEM.
 */
int top_names_find_wrappers(struct top_names *names, const struct site *sites, size_t nr,
			    uint64_t now_ns);

/* Whether the name of @row is loaded. */
bool top_names_has(const struct top_names *names, size_t row);

/* Loads the name of @row, unless it is loaded. It uses @stacks. Returns 0 or -ENOMEM. */
int top_names_load(struct top_names *names, size_t row, uint32_t stack_id);

/* The name of @row; NULL if it is not loaded. */
const struct top_name *top_names_get(const struct top_names *names, size_t row);

/* Whether a frame of @row contains @text, ignoring case. */
bool top_names_match(const struct top_names *names, size_t row, const char *text);

#endif
