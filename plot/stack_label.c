/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "plot/stack_label.h"

#include "common/scope.h"
#include "plot/frame_name.h"

#include <errno.h>
#include <string.h>

/* Whether @symbol is an address, "libx.so+0x1234" or "0x1234", or tells as little: all begins
 * there. */
static bool is_unnamed(const char *symbol)
{
	static const char *const beginnings[] = {
		"_start", "__libc_start_main", "__libc_start_call_main", "start_thread", "clone",
		"clone3", "__clone3"};
	const char *address = strrchr(symbol, '+');

	for (size_t i = 0; i < ARRAY_SIZE(beginnings); i++)
		if (strcmp(symbol, beginnings[i]) == 0)
			return true;
	address = address ? address + 1 : symbol;
	if (strncmp(address, "0x", 2) != 0)
		return false;
	return address[2] && !address[2 + strspn(address + 2, "0123456789abcdef")];
}

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
	if (label->nr && strcmp(label->names[label->nr - 1], name) == 0)
		return 0;
	if (label->nr && is_unnamed(symbol) && is_unnamed(label->names[0])) {
		if (!label->unnamed)
			label->unnamed = steal_ptr(name);
		return 0;
	}
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
	if (label->nr)
		fputs(label->names[0], out);
	if (label->nr > 1)
		fprintf(out, "%s%s", label->unnamed ? " <- ... <- " : " <- ", label->names[1]);
	else if (label->unnamed)
		fprintf(out, " <- %s", label->unnamed);
	return fclose(out) == 0 ? steal_ptr(text) : NULL;
}

void stack_label_clear(struct stack_label *label)
{
	for (int i = 0; i < label->nr; i++)
		free(label->names[i]);
	free(label->wrapper);
	free(label->unnamed);
	*label = (struct stack_label){0};
}
