/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "plot/leaks/leak_label.h"

#include "common/diag.h"
#include "common/quantity.h"
#include "common/scope.h"

#include <inttypes.h>
#include <string.h>

/* Of the functions, also where there is no room for so many. */
#define MIN_CHARS    8

#define SUFFIX_BYTES 80

/* " (500 stacks)", " (stack 13)", " (500 stacks, cause 2)" */
static void make_suffix(const struct leak_group *group, bool has_number, char ret[SUFFIX_BYTES])
{
	char number[32] = "";

	*ret = '\0';
	if (has_number)
		snprintf(number, sizeof(number), "%s %" PRIu32, group->is_cause ? "cause" : "stack",
			 group->number);
	if (group->is_cause)
		snprintf(ret, SUFFIX_BYTES, " (%s stacks%s%s)",
			 quantity_count(group->nr_stacks).text, has_number ? ", " : "", number);
	else if (has_number)
		snprintf(ret, SUFFIX_BYTES, " (%s)", number);
}

/* Cuts @text, which is UTF-8, to @max_chars characters. */
static void cut(char *text, size_t max_chars)
{
	char *end = text;
	size_t nr = 0;

	for (char *c = text; *c; c++) {
		if (((unsigned char)*c & 0xc0) == 0x80)
			continue;
		if (nr++ == max_chars - strlen("..."))
			end = c;
		if (nr > max_chars) {
			memcpy(end, "...", sizeof("..."));
			return;
		}
	}
}

/* The text without regard to those that look like it. */
static char *make_text(const struct leak_group *group, const struct stack_label *const *labels,
		       size_t nr, size_t max_chars, bool has_number)
{
	_cleanup_free_ char *stack = stack_label_text(&group->label, labels, nr);
	_cleanup_free_ char *text = NULL;
	char suffix[SUFFIX_BYTES], *whole;
	size_t size;
	FILE *out = stack ? open_memstream(&text, &size) : NULL;

	if (!out)
		return NULL;
	diag_print_escaped(out, *stack ? stack : "no stack", NULL);
	if (fclose(out) != 0)
		return NULL;
	make_suffix(group, has_number, suffix);
	cut(text, max_chars > strlen(suffix) + MIN_CHARS ? max_chars - strlen(suffix) : MIN_CHARS);
	return asprintf(&whole, "%s%s", text, suffix) < 0 ? NULL : whole;
}

char *leak_label_text(const struct leak_group *group, const struct leak_group *const *legend,
		      size_t nr, size_t max_chars)
{
	const struct stack_label *labels[PLOT_RANKS] = {0};
	_cleanup_free_ char *text = NULL;
	bool has_twin = false;

	for (size_t i = 0; i < nr; i++)
		labels[i] = &legend[i]->label;
	text = make_text(group, labels, nr, max_chars, false);
	for (size_t i = 0; text && i < nr && !has_twin; i++) {
		_cleanup_free_ char *other = make_text(legend[i], labels, nr, max_chars, false);

		has_twin = legend[i] != group && other && strcmp(text, other) == 0;
	}
	return has_twin ? make_text(group, labels, nr, max_chars, true) : steal_ptr(text);
}
