/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/sandbox/message.h"

#include <string.h>

void message_put_number(FILE *to, uint64_t number)
{
	fwrite(&number, sizeof(number), 1, to);
}

void message_put_string(FILE *to, const char *text)
{
	if (text)
		fputs(text, to);
	fputc('\0', to);
}

int64_t message_get_number(struct message_reader *reader, int64_t min, int64_t max)
{
	int64_t number;

	if (reader->is_bad || reader->end - reader->at < (ptrdiff_t)sizeof(number)) {
		reader->is_bad = true;
		return 0;
	}
	memcpy(&number, reader->at, sizeof(number));
	reader->at += sizeof(number);
	if (number < min || number > max) {
		reader->is_bad = true;
		return 0;
	}
	return number;
}

static bool is_allowed(char c, const char *allowed)
{
	return allowed ? strchr(allowed, c) != NULL : c >= ' ' && c <= '~';
}

const char *message_get_string(struct message_reader *reader, size_t max, const char *allowed)
{
	const char *text = reader->at, *nul;

	nul = reader->is_bad ? NULL : memchr(text, '\0', (size_t)(reader->end - text));
	reader->is_bad |= !nul || (size_t)(nul - text) > max;
	for (const char *c = text; !reader->is_bad && c < nul; c++)
		reader->is_bad = !is_allowed(*c, allowed);
	if (reader->is_bad)
		return "";
	reader->at = nul + 1;
	return text;
}
