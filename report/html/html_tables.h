/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The data of the HTML report as tables that refer to each other by index. Each string, function,
 * frame and call path (node) is stored once, which keeps the file small. A node is a frame called
 * from its parent node; a site's stack is the path from its node to the root. A cause of several
 * sites is a row among them, whose stack begins at the function that calls them all.
 */
#ifndef LEAKTOOLS_REPORT_HTML_TABLES_H
#define LEAKTOOLS_REPORT_HTML_TABLES_H

#include "parser/verdicts/leak_report.h"
#include "report/names/named_stack.h"
#include "report/names/row_set.h"

#define HTML_NONE	  UINT32_MAX
#define HTML_LINE_INLINED 0x80000000u /* flag in the line of a frame */

/* A stack, or a cause of several: its counts are their sums. */
struct html_site {
	const struct site *site;
	const struct site_verdict *verdict; /* NULL: the site holds nothing */
	uint64_t blocks, bytes, firm_blocks;
	uint32_t node;
	uint32_t user;	 /* the user's frame: how many of the stack's come before */
	uint32_t caller; /* the node that its cause is named after */
	uint32_t holder; /* of the largest part of what is still reachable (reach.h) */
	uint32_t cause;	 /* the row of its cause of several sites; HTML_NONE: it is alone */
};

struct html_leak {
	uint32_t site, thread;
	uint32_t block; /* index into report->held; the first of @count similar blocks */
	uint32_t count;
};

struct html_tables {
	const struct leak_report *report;
	struct name_pool *names;
	struct named_stack stack; /* the last one loaded */
	const char **strings;	  /* by index */
	size_t nr_strings, max_strings;
	struct row_set functions; /* name, module */
	struct row_set frames;	  /* function, file, line */
	struct row_set nodes;	  /* parent, frame */
	struct row_set threads;	  /* pid, tid, name */
	/* The listed stacks, those that hold nothing, causes of several stacks. */
	struct html_site *sites;
	size_t nr_sites;
	size_t nr_stacks; /* of them */
	uint32_t *causes; /* rows of sites, the worst first */
	size_t nr_causes;
	struct html_leak *leaks; /* by site, then by time */
	size_t nr_leaks;
	size_t nr_cut;	    /* stacks that lost innermost frames to MAX_NODES */
	size_t nr_left_out; /* sites that hold nothing, beyond MAX_RELEASED_SITES */
};

/* Returns 0 or -ENOMEM. Call html_tables_deinit() in either case. */
int html_tables_init(struct html_tables *tables, const struct leak_report *report);
void html_tables_deinit(struct html_tables *tables);

#endif
