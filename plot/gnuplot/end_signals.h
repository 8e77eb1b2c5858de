/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The signals by which a user or the system ends a program that would otherwise go on. */
#ifndef LEAKTOOLS_PLOT_END_SIGNALS_H
#define LEAKTOOLS_PLOT_END_SIGNALS_H

/*
 * Blocks SIGINT, SIGTERM and SIGHUP. Returns a descriptor that the caller closes and that is
 * readable once one of them has arrived, or a negative errno after reporting it.
 */
int end_signals_open(void);

#endif
