/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A file descriptor for the signals that ask the program to end. */
#ifndef LEAKTOOLS_PLOT_END_SIGNALS_H
#define LEAKTOOLS_PLOT_END_SIGNALS_H

/*
 * Blocks SIGINT, SIGTERM and SIGHUP. Returns a descriptor that is readable once one of them has
 * arrived, or a negative errno after reporting it. The caller closes the descriptor.
 */
int end_signals_open(void);

#endif
