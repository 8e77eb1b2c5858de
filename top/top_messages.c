/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "top/top_messages.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void add(struct top_messages *messages, const char *bytes, size_t size)
{
	size_t room = sizeof(messages->text) - 1 - messages->size;
	const char *text = messages->text;
	size_t end;

	if (size > room)
		size = room;
	memcpy(messages->text + messages->size, bytes, size);
	messages->size += size;
	messages->text[messages->size] = '\0';
	/* Find the last complete line. */
	end = messages->size;
	while (end > 0 && text[end - 1] != '\n')
		end--;
	if (end == 0)
		return;
	for (end--; end > 0 && text[end - 1] != '\n'; end--)
		;
	messages->last = end;
}

int top_messages_read(struct top_messages *messages, int fd)
{
	char bytes[1024];
	ssize_t got;
	int any = 0;

	while ((got = read(fd, bytes, sizeof(bytes))) > 0) {
		add(messages, bytes, (size_t)got);
		any = 1;
	}
	if (got == 0)
		return -1;
	return any;
}

void top_messages_last(const struct top_messages *messages, char *ret, size_t size)
{
	const char *line = messages->text + messages->last;

	snprintf(ret, size, "%.*s", (int)strcspn(line, "\n"), line);
}
