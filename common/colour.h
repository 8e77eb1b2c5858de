/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a terminal can show. */
#ifndef LEAKTOOLS_COMMON_COLOUR_H
#define LEAKTOOLS_COMMON_COLOUR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum colour {
	COLOUR_NONE,
	COLOUR_RED,
	COLOUR_GREEN,
	COLOUR_YELLOW,
	COLOUR_BOLD,
	COLOUR_DIM,
};

/* True if @fd is a terminal whose lines can be cleared and written anew. */
bool terminal_can_redraw(int fd);

/* The columns of the terminal @fd; 0: it is none. */
size_t terminal_columns(int fd);

/* True if @fd is a terminal that has colours and NO_COLOR is not set (https://no-color.org). */
bool colour_is_wanted(int fd);

/* Text written between the two calls has @colour, if @is_on. */
void colour_begin(FILE *out, bool is_on, enum colour colour);
void colour_end(FILE *out, bool is_on, enum colour colour);

#endif
