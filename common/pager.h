/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A pager for output on a terminal, as git has one: LEAKTOOLS_PAGER or PAGER, otherwise less. less
 * ends at once if the output fits on the screen, and shows colours (LESS=FRX, unless LESS is set).
 * "cat" or an empty value means no pager. If this process is privileged, less must not start other
 * programs (LESSSECURE=1).
 */
#ifndef LEAKTOOLS_COMMON_PAGER_H
#define LEAKTOOLS_COMMON_PAGER_H

#include <stdbool.h>
#include <sys/types.h>

struct pager {
	pid_t pid; /* 0: no pager */
};

/*
 * Starts a pager if standard output is a terminal. Standard output then goes through it, and so
 * does standard error if that is a terminal, too. If no pager can be started, nothing changes.
 */
void pager_start(struct pager *ret);

/* Flushes the output and waits until the user leaves the pager. */
void pager_finish(struct pager *pager);

/* True if writing failed with @err only because the user has left the pager. */
bool pager_was_left(const struct pager *pager, int err);

#endif
