/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "top/top_terminal.h"

#include "common/diag.h"

#include <curses.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <term.h>
#include <unistd.h>

int top_terminal_check(void)
{
	const char *name = getenv("TERM"), *why = NULL;
	int found;

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
		diag_error("--top needs a terminal: standard input or output is not one");
		return -ENOTTY;
	}
	if (!name || !*name)
		why = "is not set";
	else if (setupterm(NULL, STDOUT_FILENO, &found) != OK)
		why = "is unknown here";
	else if (!cursor_address || !clear_screen)
		why = "cannot move its cursor";
	if (cur_term)
		del_curterm(cur_term);
	if (!why)
		return 0;
	diag_error("--top cannot draw on this terminal: TERM=%s %s; try TERM=xterm, or record "
		   "without --top",
		   name ? name : "", why);
	return -ENOTTY;
}
