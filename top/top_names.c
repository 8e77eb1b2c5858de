/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "top/top_names.h"

#include "common/diag.h"
#include "common/scope.h"

#include <errno.h>
#include <string.h>

#define MAX_TITLE_FRAMES 12

static void name_deinit(struct top_name *name)
{
	for (size_t i = 0; name->frames && i < name->nr_frames; i++)
		free(name->frames[i]);
	free(name->frames);
	free(name->title);
	*name = (struct top_name){0};
}

int top_names_init(struct top_names *names, struct stack_store *stacks)
{
	*names = (struct top_names){.stacks = stacks, .pool = name_pool_create()};
	return names->pool ? 0 : -ENOMEM;
}

bool top_names_has(const struct top_names *names, size_t row)
{
	return row < names->nr && names->names[row].title;
}

const struct top_name *top_names_get(const struct top_names *names, size_t row)
{
	return top_names_has(names, row) ? &names->names[row] : NULL;
}

/* "name  file:line" or "name  (module)". */
static char *frame_text(const struct named_frame *frame)
{
	_cleanup_free_ char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	diag_print_escaped(out, frame->name, NULL);
	if (frame->file) {
		fputs("  ", out);
		diag_print_escaped(out, named_stack_basename(frame->file), NULL);
		fprintf(out, ":%d", frame->line);
	} else if (frame->module && frame->has_symbol) {
		fputs("  (", out);
		diag_print_escaped(out, named_stack_basename(frame->module), NULL);
		fputc(')', out);
	}
	return fclose(out) == 0 ? steal_ptr(text) : NULL;
}

static char *title_text(const struct named_stack *stack)
{
	_cleanup_free_ char *text = NULL;
	size_t size, first = named_stack_user_frame(stack, NULL);
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	for (size_t i = first; i < stack->nr && i < first + MAX_TITLE_FRAMES; i++) {
		if (i > first)
			fputs(" < ", out);
		diag_print_escaped(out, stack->frames[i].name, NULL);
	}
	if (stack->nr == 0)
		fputs("(no stack)", out);
	return fclose(out) == 0 ? steal_ptr(text) : NULL;
}

static int reserve(struct top_names *names, size_t row)
{
	size_t nr = names->nr ? names->nr : 256;
	struct top_name *grown;

	if (row < names->nr)
		return 0;
	while (nr <= row)
		nr *= 2;
	grown = reallocarray(names->names, nr, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	memset(grown + names->nr, 0, (nr - names->nr) * sizeof(*grown));
	names->names = grown;
	names->nr = nr;
	return 0;
}

static int name_init(struct top_name *ret, const struct named_stack *stack)
{
	*ret = (struct top_name){.frames = calloc(stack->nr + 1, sizeof(*ret->frames))};
	for (size_t i = 0; ret->frames && i < stack->nr; i++) {
		ret->frames[i] = frame_text(&stack->frames[i]);
		if (!ret->frames[i])
			break;
		ret->nr_frames++;
	}
	if (ret->frames && ret->nr_frames == stack->nr)
		ret->title = title_text(stack);
	if (ret->title)
		return 0;
	name_deinit(ret);
	return -ENOMEM;
}

int top_names_load(struct top_names *names, size_t row, uint32_t stack_id)
{
	struct named_stack stack = {.names = names->pool};
	int err = reserve(names, row);

	if (err || names->names[row].title)
		return err;
	err = named_stack_load(&stack, names->stacks, stack_id);
	if (!err)
		err = name_init(&names->names[row], &stack);
	named_stack_deinit(&stack);
	return err;
}

bool top_names_match(const struct top_names *names, size_t row, const char *text)
{
	const struct top_name *name = top_names_get(names, row);

	for (size_t i = 0; name && i < name->nr_frames; i++)
		if (strcasestr(name->frames[i], text))
			return true;
	return false;
}
