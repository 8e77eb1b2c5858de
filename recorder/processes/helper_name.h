/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of leakrec's helper processes, which may outlive it. */
#ifndef LEAKTOOLS_RECORDER_HELPER_NAME_H
#define LEAKTOOLS_RECORDER_HELPER_NAME_H

/*
 * Sets the name and the command line of this process to @name, so that `pkill leakrec` spares the
 * helpers that clean up after it.
 */
void helper_rename(const char *name);

#endif
