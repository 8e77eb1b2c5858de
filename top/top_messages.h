/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the recorder says while the screen is used: kept, to be said when it is not any more.
 */
#ifndef LEAKTOOLS_TOP_TOP_MESSAGES_H
#define LEAKTOOLS_TOP_TOP_MESSAGES_H

#include <stddef.h>

#define TOP_MAX_MESSAGES 16384 /* bytes; what comes later is dropped */

struct top_messages {
	char text[TOP_MAX_MESSAGES];
	size_t size;
	size_t last; /* where the last whole line begins */
};

/* Takes what @fd, non-blocking, has. Returns 1 if there was a new line, 0 if not, -1: it ended. */
int top_messages_read(struct top_messages *messages, int fd);

/* The last whole line, "" if there is none, cut to @size. */
void top_messages_last(const struct top_messages *messages, char *ret, size_t size);

#endif
