/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Run by root, a tool that reads recordings gives up its rights before it reads the first byte: the
 * recording, and the files that it names, may be another user's. A broker that was forked before
 * opens files, starts the pager, and runs commands that root has named.
 */
#ifndef LEAKTOOLS_TOOLS_SEPARATION_H
#define LEAKTOOLS_TOOLS_SEPARATION_H

#include "common/pager.h"

#include <stddef.h>

/* What root has named; it must live on. */
struct separation {
	const char *const *inputs;
	size_t nr_inputs;
	const char *symfs, *output, *on_leak; /* or NULL */
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
