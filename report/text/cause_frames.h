/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The frame that a cause is named after: the user's, or a caller of all its stacks. */
#ifndef LEAKTOOLS_REPORT_CAUSE_FRAMES_H
#define LEAKTOOLS_REPORT_CAUSE_FRAMES_H

#include "parser/verdicts/leak_report.h"
#include "report/names/named_stack.h"

struct cause_frames {
	struct named_stack stack; /* of one of the cause's stacks */
	size_t user;		  /* the frame that asked for the memory */
	size_t first;		  /* the frame that the cause is named after */
	size_t inner; /* the frame inside it, in which its stacks differ; SIZE_MAX: there is none */
};

/*
 * Loads the frames of @site, one of @cause. Set the names of @frames->stack before. Returns 0 or
 * -ENOMEM.
 */
int cause_frames_load(struct cause_frames *frames, const struct leak_report *report,
		      const struct leak_cause *cause, const struct leak_site *site);

#endif
