/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/text/wrapped_text.h"

#include <stdbool.h>
#include <string.h>
#include <wchar.h>

#define MORE_INDENTATION 2

/* The next character or escape sequence of @text: its bytes, and the columns that it takes. */
static size_t next_character(const char *text, size_t *ret_columns)
{
	mbstate_t state = {0};
	wchar_t wide;
	size_t nr;
	int columns;

	*ret_columns = 0;
	if (*text == '\033')
		return strcspn(text, "m\n") + (text[strcspn(text, "m\n")] == 'm');
	nr = mbrtowc(&wide, text, strlen(text), &state);
	if (nr == 0 || nr > strlen(text)) {
		*ret_columns = 1;
		return 1;
	}
	columns = wcwidth(wide);
	*ret_columns = columns > 0 ? (size_t)columns : 0;
	return nr;
}

/* The number of bytes of @line that fit in @columns. Less than all: up to a blank. */
static size_t fitting(const char *line, size_t columns)
{
	size_t at = strspn(line, " "), used = at, space = 0, width;
	bool in_brackets = false;

	while (line[at] && line[at] != '\n') {
		size_t nr = next_character(line + at, &width);

		if (line[at] == '[' || line[at] == ']')
			in_brackets = line[at] == '[';
		if (line[at] == ' ' && !in_brackets && line[at - 1] != ' ')
			space = at;
		used += width;
		/* Where no word fits, the first one is too long for any line. */
		if (used > columns && space)
			return space;
		at += nr;
	}
	return at;
}

int wrapped_text_write(FILE *out, const char *text, size_t columns)
{
	int nr_lines = 0;

	while (*text) {
		size_t indentation = strspn(text, " ") + MORE_INDENTATION, left = columns;

		for (;; left = columns > indentation ? columns - indentation : 1) {
			size_t nr = columns ? fitting(text, left) : strcspn(text, "\n");

			fwrite(text, 1, nr, out);
			fputc('\n', out);
			nr_lines++;
			text += nr;
			if (*text != ' ')
				break;
			text += strspn(text, " ");
			fprintf(out, "%*s", (int)indentation, "");
		}
		text += *text == '\n';
	}
	return nr_lines;
}

size_t wrapped_text_columns(const char *text)
{
	size_t columns = 0, width;

	while (*text) {
		text += next_character(text, &width);
		columns += width;
	}
	return columns;
}

size_t wrapped_text_bytes(const char *text, size_t columns)
{
	size_t at = 0, width;

	while (text[at]) {
		size_t nr = next_character(text + at, &width);

		if (width > columns)
			break;
		columns -= width;
		at += nr;
	}
	return at;
}
