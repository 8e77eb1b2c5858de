/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A stack on one line: "query_font (leaky_daemon.c:63) < load_font < main". */
#ifndef LEAKTOOLS_REPORT_STACK_PATH_H
#define LEAKTOOLS_REPORT_STACK_PATH_H

#include "report/names/path_details.h"

#include <stdio.h>

struct stack_path_style {
	size_t columns;	  /* for the frames after the first one */
	size_t max_bytes; /* of the whole text; frames that tell rows apart take precedence */
	bool has_place;	  /* the first frame has its source line or module */
};

extern const struct stack_path_style stack_path_summary;

/*
 * Writes the frames of @stack from @first outwards, as many as fit in a line of a summary. Names
 * are escaped. Errors of @out are the caller's to check.
 */
void stack_path_write(FILE *out, const struct named_stack *stack, size_t first);

/*
 * Makes the texts of @paths, the @nr rows of one list. Rows that would look the same also get the
 * frames in which they differ: "a < main (x.c:8)", "a < main ... (via load)". Stores @nr strings in
 * *@ret, which the caller frees with stack_paths_free(). Returns 0 or -ENOMEM.
 */
int stack_paths_texts(const struct stack_path *paths, size_t nr,
		      const struct stack_path_style *style, char ***ret);
void stack_paths_free(char **texts, size_t nr);

#endif
