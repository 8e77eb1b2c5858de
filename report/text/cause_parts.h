/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The parts of a cause of several stacks: the callees of their common caller; or, if they are all
 * of one function, its lines. Ways that look the same on the screen are one part.
 */
#ifndef LEAKTOOLS_REPORT_CAUSE_PARTS_H
#define LEAKTOOLS_REPORT_CAUSE_PARTS_H

#include "report/text/cause_frames.h"

#define CAUSE_PART_DEPTH 16 /* functions of a part that are compared */

struct cause_part {
	/* From the callee inwards: what all its stacks share. They are of the stack's pool. */
	const char *names[CAUSE_PART_DEPTH];
	size_t nr;
	const char *file;
	int line; /* 0: a callee */
	uint64_t bytes;
	size_t rank; /* of its first stack among the cause's */
};

/* Zero it before use. */
struct cause_parts {
	struct cause_part *list; /* those with the most bytes first */
	size_t nr;
	uint64_t bytes; /* of all */
};

/*
 * Finds the parts of @cause, whatever the number of its stacks. @like has the pool of names and the
 * wrappers to use. Returns 0 or -ENOMEM.
 */
int cause_parts_find(struct cause_parts *parts, const struct leak_report *report,
		     const struct leak_cause *cause, const struct named_stack *like);
void cause_parts_deinit(struct cause_parts *parts);

/* The innermost function, if all parts have the same; else NULL. */
const char *cause_parts_only_function(const struct cause_parts *parts);

/*
 * "read_glyphs < load_font 40 %, load_index 22 %, 7 more"; "server.c:19 60 %, server.c:23 40 %".
 */
void cause_parts_write(FILE *out, const struct cause_parts *parts);

#endif
