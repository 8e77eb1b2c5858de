/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Ctrl-Z, which stops the recorder, but not its targets. */
#ifndef LEAKTOOLS_RECORDER_SUSPENSION_H
#define LEAKTOOLS_RECORDER_SUSPENSION_H

#include "recorder/target_table/target_table.h"

/*
 * When Ctrl-Z stops this process, all targets continue, and none is stopped until `fg`. Also lets a
 * recorder in the background write to its terminal. There is one table at a time.
 */
void suspension_watch(struct target_table *table);
void suspension_unwatch(void);

/* How often that happened. */
unsigned int suspension_count(void);

/*
 * Continues all targets, also those that programs are stopping now. Call it when no program stops
 * any more. Safe in signal handlers.
 */
void suspension_let_go(struct target_table *table);

#endif
