/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "top/top_names.h"

#include "common/diag.h"
#include "common/scope.h"

#include <errno.h>
#include <string.h>

/* The search for wrappers names stacks, so it takes those that came first, and seldom. */
#define MAX_SITES 256
#define SEARCH_NS 5000000000ULL

static void name_deinit(struct top_name *name)
{
	for (size_t i = 0; name->frames && i < name->nr_frames; i++)
		free(name->frames[i]);
	free(name->frames);
	named_stack_deinit(&name->stack);
	*name = (struct top_name){0};
}

int top_names_init(struct top_names *names, struct stack_store *stacks)
{
	*names = (struct top_names){.stacks = stacks, .pool = name_pool_create()};
	return names->pool ? 0 : -ENOMEM;
}

int top_names_find_wrappers(struct top_names *names, const struct site *sites, size_t nr,
			    uint64_t now_ns)
{
	const struct own_wrappers_input input = {
		.sites = sites,
		.nr_sites = nr < MAX_SITES ? nr : MAX_SITES,
		.frames_of = own_wrappers_frames,
		.stacks = names->stacks,
	};
	size_t nr_before = names->wrappers.nr;
	int err;

	if (now_ns < names->next_search_ns)
		return 0;
	err = own_wrappers_find(&names->wrappers, &input);
	names->next_search_ns = now_ns + SEARCH_NS;
	if (err || (!names->wrappers.nr && !nr_before))
		return err;
	for (size_t i = 0; i < names->nr; i++)
		if (names->names[i].frames)
			names->names[i].first =
				named_stack_user_frame(&names->names[i].stack, NULL);
	return 0;
}

bool top_names_has(const struct top_names *names, size_t row)
{
	return row < names->nr && names->names[row].frames;
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

/* Rows are many, and their stacks stay. */
static void shrink(struct named_stack *stack)
{
	size_t nr = stack->nr ? stack->nr : 1;
	struct named_frame *frames = reallocarray(stack->frames, nr, sizeof(*frames));

	if (!frames)
		return;
	stack->frames = frames;
	stack->max = nr;
}

/* Returns 0 or -ENOMEM. */
static int name_frames(struct top_name *name)
{
	const struct named_stack *stack = &name->stack;

	name->first = named_stack_user_frame(stack, NULL);
	name->frames = calloc(stack->nr + 1, sizeof(*name->frames));
	for (size_t i = 0; name->frames && i < stack->nr; i++) {
		name->frames[i] = frame_text(&stack->frames[i]);
		if (!name->frames[i])
			break;
		name->nr_frames++;
	}
	return name->frames && name->nr_frames == stack->nr ? 0 : -ENOMEM;
}

int top_names_load(struct top_names *names, size_t row, uint32_t stack_id)
{
	int err = reserve(names, row);
	struct top_name *name = err ? NULL : &names->names[row];

	if (err || name->frames)
		return err;
	name->stack.names = names->pool;
	name->stack.wrappers = &names->wrappers;
	err = named_stack_load(&name->stack, names->stacks, stack_id);
	if (!err)
		shrink(&name->stack);
	if (!err)
		err = name_frames(name);
	if (err)
		name_deinit(name);
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
