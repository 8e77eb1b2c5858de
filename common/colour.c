/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/colour.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define DEFAULT_COLUMNS 80

bool terminal_can_redraw(int fd)
{
	const char *type = getenv("TERM");

	return isatty(fd) && type && strcmp(type, "dumb") != 0;
}

size_t terminal_columns(int fd)
{
	struct winsize size;

	if (!isatty(fd))
		return 0;
	return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : DEFAULT_COLUMNS;
}

bool colour_is_wanted(int fd)
{
	const char *none = getenv("NO_COLOR");

	return !(none && *none) && terminal_can_redraw(fd);
}

void colour_begin(FILE *out, bool is_on, enum colour colour)
{
	static const char *const codes[] = {
		[COLOUR_NONE] = "",	     [COLOUR_RED] = "\033[31m",
		[COLOUR_GREEN] = "\033[32m", [COLOUR_YELLOW] = "\033[33m",
		[COLOUR_BOLD] = "\033[1m",   [COLOUR_DIM] = "\033[2m",
	};

	if (is_on)
		fputs(codes[colour], out);
}

void colour_end(FILE *out, bool is_on, enum colour colour)
{
	if (is_on && colour != COLOUR_NONE)
		fputs("\033[m", out);
}
