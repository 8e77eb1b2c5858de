/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The names of leakrec's helpers, processes that it forks and that may outlive it. */
#ifndef LEAKTOOLS_RECORDER_HELPER_NAME_H
#define LEAKTOOLS_RECORDER_HELPER_NAME_H

/*
 * Gives this process a name and a command line of @name only: whoever kills "leakrec" by either is
 * not to kill those that tidy up after it.
 */
void helper_rename(const char *name);

#endif
