/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Releases of blocks: free() and its like, and what realloc() does to its old block. */
#ifndef LEAKTOOLS_PARSER_HEAP_RELEASES_H
#define LEAKTOOLS_PARSER_HEAP_RELEASES_H

#include "parser/calls/heap_step.h"

/* A call that only releases. Returns 0 or -ENOMEM. */
int heap_release_free(struct heap_step *step);

/* @call of realloc(), on top of the stack, releases its old block. Returns 0 or -ENOMEM. */
int heap_release_old_block(struct heap_step *step, struct open_call *call);

/* @call of realloc() has failed: its old block was never released. Returns 0 or -ENOMEM. */
int heap_release_undo(struct heap_step *step, const struct open_call *call);

#endif
