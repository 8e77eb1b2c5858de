/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A pprof profile in the making: functions, mappings and locations, each once, in the order of
 * their numbers; and the strings that they refer to. profile.pb-c.h has the messages.
 */
#ifndef LEAKTOOLS_REPORT_PPROF_PROFILE_H
#define LEAKTOOLS_REPORT_PPROF_PROFILE_H

#include "report/names/named_stack.h"
#include "report/formats/profile.pb-c.h"

struct pprof_profile;

/* NULL: out of memory. */
struct pprof_profile *pprof_profile_create(void);
void pprof_profile_destroy(struct pprof_profile *profile);

/* Adds a stack with the two values. Returns 0 or -ENOMEM. */
int pprof_profile_add(struct pprof_profile *profile, struct stack_store *store, uint32_t stack_id,
		      int64_t blocks, int64_t bytes);

/* The message as it is in the file, uncompressed; the caller frees it. Returns 0 or -ENOMEM. */
int pprof_profile_pack(struct pprof_profile *profile, int64_t duration_ns, uint8_t **ret,
		       size_t *ret_size);

#endif
