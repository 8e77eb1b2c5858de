/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Whether a signal asks this process to end, for work of many steps. True only where such signals
 * are blocked, and until the signal is read from its descriptor.
 */
#ifndef LEAKTOOLS_COMMON_INTERRUPTED_H
#define LEAKTOOLS_COMMON_INTERRUPTED_H

#include <signal.h>
#include <stdbool.h>

static inline bool is_interrupted(void)
{
	sigset_t pending;

	return sigpending(&pending) == 0 &&
	       (sigismember(&pending, SIGINT) || sigismember(&pending, SIGTERM) ||
		sigismember(&pending, SIGHUP));
}

#endif
