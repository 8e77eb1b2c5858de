/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Builds a pprof profile (profile.proto). Each function, mapping, location and string is stored
 * once and referred to by its number.
 */
#ifndef LEAKTOOLS_REPORT_PPROF_PROFILE_H
#define LEAKTOOLS_REPORT_PPROF_PROFILE_H

#include "report/formats/profile.pb-c.h"
#include "report/names/named_stack.h"

struct pprof_profile;

/* Returns NULL if memory is exhausted. */
struct pprof_profile *pprof_profile_create(void);
void pprof_profile_destroy(struct pprof_profile *profile);

/* Adds a sample of stack @stack_id. Returns 0 or -ENOMEM. */
int pprof_profile_add(struct pprof_profile *profile, struct stack_store *store, uint32_t stack_id,
		      int64_t blocks, int64_t bytes);

/* Serialises the profile, uncompressed. The caller frees *@ret. Returns 0 or -ENOMEM. */
int pprof_profile_pack(struct pprof_profile *profile, int64_t duration_ns, uint8_t **ret,
		       size_t *ret_size);

#endif
