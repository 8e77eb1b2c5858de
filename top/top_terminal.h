/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whether the terminal can show the view. */
#ifndef LEAKTOOLS_TOP_TOP_TERMINAL_H
#define LEAKTOOLS_TOP_TOP_TERMINAL_H

/* Returns 0, or -ENOTTY after reporting why it cannot. */
int top_terminal_check(void);

#endif
