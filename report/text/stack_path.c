/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/text/stack_path.h"

#include "common/diag.h"

#include <string.h>

#define PATH_COLUMNS 96

/* A frame without a symbol is shown as its module: an offset says nothing on a summary. */
static const char *name_of(const struct named_frame *frame)
{
	return !frame->has_symbol && frame->module ? named_stack_basename(frame->module)
						   : frame->name;
}

/* Writes " < NAME" if it fits. The first name always does. */
static bool add_name(FILE *out, size_t *columns, const char *name)
{
	size_t len = strlen(name) + (*columns ? 3 : 0);

	if (*columns && *columns + len > PATH_COLUMNS) {
		fputs(" ...", out);
		return false;
	}
	if (*columns)
		fputs(" < ", out);
	diag_print_escaped(out, name, NULL);
	*columns += len;
	return true;
}

void stack_path_write(FILE *out, const struct named_stack *stack, size_t first)
{
	const struct named_frame *frames = stack->frames;
	const char *last = "";
	size_t columns = 0;

	for (size_t i = first; i < stack->nr; i++) {
		const char *name = name_of(&frames[i]);

		/* Neighbours in a module without symbols become one name. */
		if (!frames[i].has_symbol && strcmp(name, last) == 0)
			continue;
		if (!add_name(out, &columns, name))
			break;
		last = name;
	}
	if (first >= stack->nr) {
		fputs("(no stack)", out);
		return;
	}
	if (!frames[first].file && !frames[first].module)
		return;
	fputs("  at ", out);
	diag_print_escaped(out,
			   named_stack_basename(frames[first].file ? frames[first].file
								   : frames[first].module),
			   NULL);
	if (frames[first].file)
		fprintf(out, ":%d", frames[first].line);
}
