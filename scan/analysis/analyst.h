/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Analyses a snapshot in a child process, leak-reader, without privileges. It hands back no more
 * than the list of blocks without a holder, or writes the report itself.
 */
#ifndef LEAKTOOLS_SCAN_ANALYST_H
#define LEAKTOOLS_SCAN_ANALYST_H

#include "scan/analysis/scan.h"

struct analyst_task {
	/* The broker (common/broker/broker.h) that opens debug files for root; -1: none. */
	int broker_fd;
	bool accepts_doubt;	     /* also if the heap is not whole */
	struct traced_source traced; /* may have no @read */
	/* Writes the report. NULL: the list is what is wanted. */
	int (*write)(void *context, const struct scan *scan);
	void *context;

	uint64_t taken_ns;     /* when the snapshot was taken */
	struct lost_list lost; /* result, if there is no @write */
};

/*
 * Runs the task. Returns 0; -EAGAIN if the heap is not whole, and another snapshot should be taken;
 * or a negative errno, reported. Call it while this process has one thread.
 */
int analyst_run(struct analyst_task *task, const struct snapshot *snapshot,
		const struct lost_list *before);
void analyst_task_deinit(struct analyst_task *task);

#endif
