/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Releases of blocks: by free() and the like, and by realloc(), which releases its old block. */
#ifndef LEAKTOOLS_PARSER_HEAP_RELEASES_H
#define LEAKTOOLS_PARSER_HEAP_RELEASES_H

#include "parser/calls/heap_step.h"

/* Handles a call that only releases. Returns 0 or -ENOMEM. */
int heap_release_free(struct heap_step *step);

/*
 * Releases the old block of realloc()'s @call, which is on top of the stack. Returns 0 or -ENOMEM.
 */
int heap_release_old_block(struct heap_step *step, struct open_call *call);

/*
 * After the last event: double frees whose address may have been allocated in between, by a lost
 * event, become releases of unknown blocks.
 */
void heap_release_doubt_all(struct heap_sink *sink);

/* Undoes that release: realloc()'s @call has failed. Returns 0 or -ENOMEM. */
int heap_release_undo(struct heap_step *step, const struct open_call *call);

#endif
