/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Makes interned stacks of samples: of the callchain or the dump, and of the addresses beside them.
 *
 * *@incomplete counts callchains that the recorder marked as not unwound to their end.
 */
#ifndef LEAKTOOLS_PARSER_SAMPLE_STACKS_H
#define LEAKTOOLS_PARSER_SAMPLE_STACKS_H

#include "parser/records/perf_event_types.h"
#include "unwind/stacks/stack_store.h"

/* The stack of a probe's sample, the probed function on top. Returns 0 or -ENOMEM. */
int sample_stacks_add_call(struct stack_store *stacks, const struct perf_sample *sample,
			   uint64_t *incomplete, uint32_t *ret_id);

/* The stack of a system call's sample. Returns 0 or -ENOMEM. */
int sample_stacks_add_syscall(struct stack_store *stacks, const struct perf_sample *sample,
			      uint64_t *incomplete, uint32_t *ret_id);

#endif
