/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/names/place_names.h"

#include <errno.h>
#include <stdlib.h>

void place_names_deinit(struct place_names *names)
{
	struct place_name *name, *next;

	HASH_ITER (hh, names->by_place, name, next) {
		HASH_DELETE(hh, names->by_place, name);
		free(name);
	}
}

static unsigned int hash_of(const uint64_t key[2])
{
	return (unsigned int)hash_words(key, 2, hash_seed());
}

const struct place_name *place_names_find(const struct place_names *names, uint32_t module_id,
					  uint64_t offset)
{
	const uint64_t key[2] = {module_id, offset};
	struct place_name *name;

	HASH_FIND_BYHASHVALUE(hh, names->by_place, key, sizeof(key), hash_of(key), name);
	return name;
}

int place_names_add(struct place_names *names, uint32_t module_id, uint64_t offset,
		    const char *function, uint64_t function_offset)
{
	size_t len = strlen(function);
	struct place_name *name;

	if (place_names_find(names, module_id, offset))
		return 0;
	name = calloc(1, sizeof(*name) + len + 1);
	if (!name)
		return -ENOMEM;
	name->key[0] = module_id;
	name->key[1] = offset;
	name->function_offset = function_offset;
	memcpy(name->function, function, len);
	HASH_ADD_BYHASHVALUE(hh, names->by_place, key, sizeof(name->key), hash_of(name->key), name);
	if (!hash_added(name)) {
		free(name);
		return -ENOMEM;
	}
	return 0;
}
