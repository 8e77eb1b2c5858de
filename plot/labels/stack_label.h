/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Labels a stack in a legend by the user's function and its caller, "_XQueryFont <- XQueryFont",
 * with names shortened by frame_name.h. Frames are added one by one, innermost first; what comes
 * before the user's frame (common/schema/user_frame.h) is skipped, and a recursive function is
 * named once.
 *
 * An address without a symbol says little, so the caller is then the next function with a name:
 * "libfont.so+0x234d9 <- ... <- FcFontMatch". If stacks of one legend have both functions in
 * common, for example when they all allocate through a list's insert(), each label also has the
 * first outer function that tells it apart; if all functions are equal, the first line that does,
 * "add (list.c:63) <- put", else what it called, "add (list.c:63, via std::vector<>::push_back) <-
 * put", else an offset.
 */
#ifndef LEAKTOOLS_PLOT_STACK_LABEL_H
#define LEAKTOOLS_PLOT_STACK_LABEL_H

#include "common/schema/user_frame.h"

#include <stdbool.h>
#include <stddef.h>

/* Functions kept to tell stacks apart; a label shows at most three. */
#define STACK_LABEL_FRAMES     8
#define STACK_LABEL_PLACES     4 /* of the first of them, to tell apart those with equal functions */
#define STACK_LABEL_INNER      3 /* functions that the user's called, the last ones */
#define STACK_LABEL_NAME_CHARS 48
/* The size of three names, beyond which the middle one is left out. */
#define STACK_LABEL_NAMES_BYTES 48

/* Where in its function a frame is; NULL: not known. */
struct stack_label_place {
	const char *line;   /* "daemon.c:63" */
	const char *offset; /* "0x1a" */
};

/* Zero it before the first use. */
struct stack_label {
	char *names[STACK_LABEL_FRAMES];
	int nr;
	char *lines[STACK_LABEL_PLACES], *offsets[STACK_LABEL_PLACES];
	/* What comes before the user's frame, innermost first: short, and with template arguments.
	 */
	char *inner[STACK_LABEL_INNER], *inner_full[STACK_LABEL_INNER];
	int nr_inner;
	char *wrapper; /* the allocation function or its caller, for stacks of nothing else */
	char *unnamed; /* an outer frame without a name, shown if no outer frame has one */
	char *module;  /* the innermost frame's, for @search */
	struct user_frame_search search; /* set its is_pool before the first use, if it is one */
};

/* Adds the next outer frame. Returns 0 or -ENOMEM, unreported. */
int stack_label_add(struct stack_label *label, const struct frame_facts *frame,
		    const struct stack_label_place *place);

/*
 * The text of @label in a legend of @nr labels, which may include it; "" without frames. Another
 * may have the same text if their frames differ in nothing that is kept. The caller frees the
 * result, which is NULL if memory is exhausted.
 */
char *stack_label_text(const struct stack_label *label, const struct stack_label *const *legend,
		       size_t nr);

/* Frees the contents of @label and zeroes it. */
void stack_label_clear(struct stack_label *label);

#endif
