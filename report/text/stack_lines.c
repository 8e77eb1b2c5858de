/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/text/stack_lines.h"

#include "common/diag.h"
#include "common/schema/frame_name.h"
#include "common/scope.h"
#include "report/text/leaks_text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_ALLOCATION 1024
/* A name is in the line of each block, so a long one would make the file long. */
#define CALLER_CHARS 48

struct stack_line {
	const char *function; /* NULL: not known */
	char *caller;	      /* NULL: not yet written */
};

int stack_lines_init(struct stack_lines *lines, const struct analysis *analysis, FILE *out)
{
	*lines = (struct stack_lines){.analysis = analysis, .out = out};
	lines->stack.names = name_pool_create();
	return lines->stack.names ? 0 : -ENOMEM;
}

void stack_lines_deinit(struct stack_lines *lines)
{
	struct name_pool *names = lines->stack.names;

	for (size_t i = 0; i < lines->nr; i++)
		free(lines->lines[i].caller);
	free(lines->lines);
	named_stack_deinit(&lines->stack);
	if (names)
		name_pool_destroy(names);
	*lines = (struct stack_lines){0};
}

/* Makes room for the line of @stack_id. Returns NULL if memory is exhausted. */
static struct stack_line *reserve(struct stack_lines *lines, uint32_t stack_id)
{
	size_t nr = lines->nr ? lines->nr : FIRST_ALLOCATION;
	struct stack_line *grown;

	while (nr <= stack_id)
		nr *= 2;
	if (nr != lines->nr) {
		grown = reallocarray(lines->lines, nr, sizeof(*grown));
		if (!grown)
			return NULL;
		memset(grown + lines->nr, 0, (nr - lines->nr) * sizeof(*grown));
		lines->lines = grown;
		lines->nr = nr;
	}
	return &lines->lines[stack_id];
}

char *stack_lines_name(const struct named_stack *stack, size_t frame)
{
	_cleanup_free_ char *name = NULL, *text = NULL;
	size_t size;
	FILE *out;

	if (stack->nr) {
		name = frame_name_short(stack->frames[frame].name, CALLER_CHARS);
		if (!name)
			return NULL;
	}
	out = open_memstream(&text, &size);
	if (!out)
		return NULL;
	diag_print_escaped(out, name && *name ? name : "?", " \t");
	return fclose(out) == 0 ? steal_ptr(text) : NULL;
}

void stack_lines_define(struct stack_lines *lines, uint32_t stack_id, const char *function)
{
	struct stack_line *line = reserve(lines, stack_id);

	if (line && line->caller)
		return;
	if (!line || named_stack_load(&lines->stack, lines->analysis->stacks, stack_id)) {
		lines->err = -ENOMEM;
		return;
	}
	line->function = function;
	line->caller =
		stack_lines_name(&lines->stack, named_stack_user_frame(&lines->stack, function));
	if (!line->caller) {
		lines->err = -ENOMEM;
		return;
	}
	fprintf(lines->out, "frames %" PRIu32 " %s %s\n", stack_id, function ? function : "?",
		line->caller);
	leaks_write_stack(lines->out, lines->analysis, stack_id, 0);
}

const char *stack_lines_caller(const struct stack_lines *lines, uint32_t stack_id)
{
	const char *caller = stack_id < lines->nr ? lines->lines[stack_id].caller : NULL;

	return caller ? caller : "?";
}

bool stack_lines_has_other(const struct stack_lines *lines, uint32_t stack_id, const char *function)
{
	const char *first = stack_id < lines->nr ? lines->lines[stack_id].function : NULL;

	return !first || strcmp(first, function) != 0;
}
