/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a recording itself calls places in files, for files that cannot be read or have no symbol.
 */
#ifndef LEAKTOOLS_UNWIND_PLACE_NAMES_H
#define LEAKTOOLS_UNWIND_PLACE_NAMES_H

#include "common/hash.h"

struct place_name {
	uint64_t key[2]; /* module id, offset in its file */
	uint64_t function_offset;
	UT_hash_handle hh;
	char function[];
};

/* Zero it before use. */
struct place_names {
	struct place_name *by_place;
};

void place_names_deinit(struct place_names *names);

/* Names a place, if that has not been done. @function is copied. Returns 0 or -ENOMEM. */
int place_names_add(struct place_names *names, uint32_t module_id, uint64_t offset,
		    const char *function, uint64_t function_offset);

/* The name of a place, or NULL. */
const struct place_name *place_names_find(const struct place_names *names, uint32_t module_id,
					  uint64_t offset);

#endif
