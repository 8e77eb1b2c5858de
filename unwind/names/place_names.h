/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The recording's own names for positions in files, for files that cannot be read or lack symbols.
 */
#ifndef LEAKTOOLS_UNWIND_PLACE_NAMES_H
#define LEAKTOOLS_UNWIND_PLACE_NAMES_H

#include "common/hash.h"

struct place_name {
	uint64_t key[2]; /* module id, offset in the file */
	uint64_t function_offset;
	UT_hash_handle hh;
	char function[];
};

/* Zero it before use. */
struct place_names {
	struct place_name *by_place;
};

void place_names_deinit(struct place_names *names);

/* Names a position that has no name yet. @function is copied. Returns 0 or -ENOMEM. */
int place_names_add(struct place_names *names, uint32_t module_id, uint64_t offset,
		    const char *function, uint64_t function_offset);

/* The name of a position, or NULL. */
const struct place_name *place_names_find(const struct place_names *names, uint32_t module_id,
					  uint64_t offset);

#endif
