/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A pager for what people read on a terminal, as git has one: LEAKTOOLS_PAGER or PAGER, else less,
 * which leaves what fits on the screen there, and shows colours (LESS=FRX, unless LESS is set).
 * "cat", or nothing, is none. Where we are privileged, less is told not to start other programs
 * (LESSSECURE=1).
 */
#ifndef LEAKTOOLS_COMMON_PAGER_H
#define LEAKTOOLS_COMMON_PAGER_H

#include <stdbool.h>
#include <sys/types.h>

struct pager {
	pid_t pid; /* 0: there is none */
};

/*
 * If standard output is a terminal, what is written to it from here on goes through the pager, and
 * so does standard error if that is the terminal, too. Where no pager can be started, nothing
 * changes.
 */
void pager_start(struct pager *ret);

/* Writes what is buffered, and waits until the user has read it. */
void pager_finish(struct pager *pager);

/* True if a failure to write is only that the user has seen enough. */
bool pager_was_left(const struct pager *pager, int err);

#endif
