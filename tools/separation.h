/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Run by root, a tool that reads what another user may have written gives up its rights before it
 * reads the first byte. A broker that was forked before opens files, starts the pager, and runs
 * what root has named.
 */
#ifndef LEAKTOOLS_TOOLS_SEPARATION_H
#define LEAKTOOLS_TOOLS_SEPARATION_H

#include "common/broker/broker.h"
#include "common/pager.h"

struct separation {
	const char *output; /* that root has named, or NULL; it must live on */
	/*
	 * What the broker does besides: each in the broker. add_services() returns 0 or a negative
	 * errno; end_services(), which may be NULL, is called when nobody asks any more.
	 */
	int (*add_services)(const void *context, struct broker_service services[BROKER_NR_OPS]);
	void (*end_services)(void);
	const void *context;
};

/*
 * Does nothing if this process is not root's. Call it before there are threads. Returns 0 or a
 * negative errno, reported.
 */
int separation_begin(const struct separation *separation);

/* Ends the broker, and waits for that. */
void separation_end(void);

/* output_file_redirect(), pager_start() and pager_finish(), separated or not. */
int separation_redirect(const char *path);
void separation_start_pager(struct pager *ret);
void separation_finish_pager(struct pager *pager);

#endif
