/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Removes threads and processes that have ended and that nothing names any more. So memory does not
 * grow with all that a recording has ever seen. Reports name the threads and processes of held
 * blocks and of anomalies: these stay.
 *
 * To find out what is named takes a look at all held blocks. So it is done when many have ended.
 */
#ifndef LEAKTOOLS_PARSER_ENDED_TASKS_H
#define LEAKTOOLS_PARSER_ENDED_TASKS_H

#include "parser/processes/process_table.h"

#define MIN_ENDED_TASKS 16384

/* True if there are so many threads that it may pay. */
static inline bool ended_tasks_are_due(const struct process_table *table)
{
	return HASH_COUNT(table->threads) >= (table->clear_at ? table->clear_at : MIN_ENDED_TASKS);
}

/* Removes those that ended some time before @now_ns. Returns 0 or -ENOMEM. */
int ended_tasks_remove(struct process_table *table, const struct heap_anomalies *anomalies,
		       uint64_t now_ns);

#endif
