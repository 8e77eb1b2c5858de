/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "plot/stack_label.h"

#include "common/scope.h"
#include "plot/frame_name.h"

#include <errno.h>
#include <string.h>

bool stack_label_is_full(const struct stack_label *label)
{
	return label->nr == STACK_LABEL_FRAMES;
}

int stack_label_add(struct stack_label *label, const char *symbol)
{
	_cleanup_free_ char *name = NULL;

	if (stack_label_is_full(label))
		return 0;
	name = frame_name_short(symbol, STACK_LABEL_NAME_CHARS);
	if (!name)
		return -ENOMEM;
	if (label->nr == 0 && frame_name_is_wrapper(symbol)) {
		free(label->wrapper);
		label->wrapper = steal_ptr(name);
		return 0;
	}
	if (label->nr == 0 || strcmp(label->names[label->nr - 1], name) != 0)
		label->names[label->nr++] = steal_ptr(name);
	return 0;
}

char *stack_label_text(const struct stack_label *label)
{
	_cleanup_free_ char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	if (label->nr == 0 && label->wrapper)
		fputs(label->wrapper, out);
	for (int i = 0; i < label->nr; i++)
		fprintf(out, "%s%s", i ? " <- " : "", label->names[i]);
	return fclose(out) == 0 ? steal_ptr(text) : NULL;
}

void stack_label_clear(struct stack_label *label)
{
	for (int i = 0; i < label->nr; i++)
		free(label->names[i]);
	free(label->wrapper);
	*label = (struct stack_label){0};
}
