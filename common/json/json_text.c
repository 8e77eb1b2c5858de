/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/json/json_text.h"

#include "common/diag.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Decodes the character at @text. Returns its length in bytes, or 0 if it is invalid UTF-8. */
static size_t decode(const unsigned char *text, uint32_t *ret)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t len = *text < 0x80	      ? 1
		     : (*text & 0xe0) == 0xc0 ? 2
		     : (*text & 0xf0) == 0xe0 ? 3
		     : (*text & 0xf8) == 0xf0 ? 4
					      : 0;
	uint32_t character = len == 1 ? *text : *text & (0x7fu >> len);

	for (size_t i = 1; i < len; i++) {
		/* The terminating NUL fails this test, too. */
		if ((text[i] & 0xc0) != 0x80)
			return 0;
		character = character << 6 | (text[i] & 0x3f);
	}
	if (len > 1 && (character < least[len] || character > 0x10ffff ||
			(character >= 0xd800 && character <= 0xdfff)))
		return 0;
	*ret = character;
	return len;
}

/* JSON escapes characters beyond U+FFFF as surrogate pairs. */
static void write_escaped(FILE *out, uint32_t character)
{
	if (character > 0xffff)
		fprintf(out, "\\u%04x\\u%04x", 0xd800 + ((character - 0x10000) >> 10),
			0xdc00 + (character & 0x3ff));
	else
		fprintf(out, "\\u%04x", character);
}

static void write_character(FILE *out, const unsigned char *text, size_t len, uint32_t character)
{
	if (character == '"' || character == '\\')
		fprintf(out, "\\%c", (int)character);
	else if (character == '\n')
		fputs("\\n", out);
	else if (character == '\t')
		fputs("\\t", out);
	else if (character < ' ' || (character >= 0x7f && character < 0xa0) || character == '<' ||
		 diag_is_invisible(character))
		write_escaped(out, character);
	else
		fwrite(text, 1, len, out);
}

/* False for what diag_print_escaped() escapes. */
static bool is_readable(uint32_t character)
{
	return character >= ' ' && (character < 0x7f || character >= 0xa0) && character != '\\' &&
	       !diag_is_invisible(character);
}

static void write_string(FILE *out, const char *text, bool as_readable)
{
	const unsigned char *next = (const unsigned char *)text;

	if (!text) {
		fputs("null", out);
		return;
	}
	fputc('"', out);
	while (*next) {
		uint32_t character;
		size_t len = decode(next, &character);

		if (as_readable && !(len && is_readable(character)))
			for (size_t i = 0; i < (len ? len : 1); i++)
				fprintf(out, "\\\\x%02x", next[i]);
		else if (len)
			write_character(out, next, len, character);
		else
			fputs("\\ufffd", out);
		next += len ? len : 1;
	}
	fputc('"', out);
}

void json_write_string(FILE *out, const char *text)
{
	write_string(out, text, false);
}

void json_write_readable(FILE *out, const char *text)
{
	write_string(out, text, true);
}

void json_write_key(FILE *out, const char *name)
{
	json_write_string(out, name);
	fputc(':', out);
}
