/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Collects the recorder's messages while the view uses the screen, to print them afterwards. */
#ifndef LEAKTOOLS_TOP_TOP_MESSAGES_H
#define LEAKTOOLS_TOP_TOP_MESSAGES_H

#include <stddef.h>

#define TOP_MAX_MESSAGES 16384 /* bytes; later messages are dropped */

struct top_messages {
	char text[TOP_MAX_MESSAGES];
	size_t size;
	size_t last; /* offset of the last complete line */
};

/* Reads all that non-blocking @fd has. Returns 1 if it had data, 0 if not, -1 at its end. */
int top_messages_read(struct top_messages *messages, int fd);

/* Copies the last complete line, or "", cut to @size. */
void top_messages_last(const struct top_messages *messages, char *ret, size_t size);

#endif
