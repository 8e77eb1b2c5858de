/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/names/name_pool.h"

#include "common/hash.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct name {
	UT_hash_handle hh;
	uint32_t number;
	char text[];
};

struct name_pool {
	struct name *names;
};

struct name_pool *name_pool_create(void)
{
	return calloc(1, sizeof(struct name_pool));
}

void name_pool_destroy(struct name_pool *pool)
{
	struct name *name, *next;

	if (!pool)
		return;
	HASH_ITER (hh, pool->names, name, next) {
		HASH_DEL(pool->names, name);
		free(name);
	}
	free(pool);
}

int name_pool_add(struct name_pool *pool, const char *text, const char **ret)
{
	struct name *name;
	size_t len;

	*ret = NULL;
	if (!text)
		return 0;
	len = strlen(text);
	HASH_FIND(hh, pool->names, text, len, name);
	if (!name) {
		name = calloc(1, sizeof(*name) + len + 1);
		if (!name)
			return -ENOMEM;
		memcpy(name->text, text, len + 1);
		name->number = HASH_COUNT(pool->names);
		HASH_ADD_KEYPTR(hh, pool->names, name->text, len, name);
		if (!hash_added(name)) {
			free(name);
			return -ENOMEM;
		}
	}
	*ret = name->text;
	return 0;
}

size_t name_pool_size(const struct name_pool *pool)
{
	return HASH_COUNT(pool->names);
}

void name_pool_list(const struct name_pool *pool, const char **ret_names)
{
	/* uthash iterates in the order of insertion. */
	for (const struct name *name = pool->names; name; name = name->hh.next)
		ret_names[name->number] = name->text;
}

uint32_t name_pool_number(const char *name)
{
	return ((const struct name *)(name - offsetof(struct name, text)))->number;
}
