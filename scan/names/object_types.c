/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "scan/names/object_types.h"

#include "common/scope.h"
#include "unwind/names/demangler.h"

#include <ctype.h>

#define MAX_NAME   1024
#define MAX_TABLES (1u << 20)

/* Of all names, as they are in files and as they are shown; a program of 100,000 types has 20 MiB.
 */
#define MAX_NAME_BYTES (64u << 20)

/* A word that was looked at as a table. */
struct known_table {
	uint64_t address;
	char *name; /* NULL: no table */
	UT_hash_handle hh;
};

void object_types_init(struct object_types *ret, const struct snapshot *snapshot)
{
	*ret = (struct object_types){.snapshot = snapshot};
	pthread_mutex_init(&ret->lock, NULL);
}

void object_types_deinit(struct object_types *types)
{
	struct known_table *table, *next;

	HASH_ITER (hh, types->by_address, table, next) {
		HASH_DEL(types->by_address, table);
		free(table->name);
		free(table);
	}
	pthread_mutex_destroy(&types->lock);
}

/* In a file's memory that the program does not write. */
static const struct scan_region *constant_region(const struct object_types *types, uint64_t address)
{
	const struct scan_region *region = snapshot_region(types->snapshot, address);

	return region && region->has_file && !region->is_writable ? region : NULL;
}

static bool read_name(const struct object_types *types, uint64_t address, char *ret, size_t size)
{
	if (!constant_region(types, address))
		return false;
	for (size_t i = 0, end = 0; i < size; i++) {
		/* Page by page: behind a name there may be no memory. */
		if (i == end) {
			end += SCAN_PAGE_SIZE - (address + i) % SCAN_PAGE_SIZE;
			end = end < size ? end : size;
			if (!snapshot_read(types->snapshot, address + i, ret + i, end - i))
				return false;
		}
		if (!ret[i])
			return i > 0;
		if (!isalnum((unsigned char)ret[i]) && !strchr("_.$*", ret[i]))
			return false;
	}
	return false;
}

/* The name of the type whose table is at @table; the caller frees it. */
static char *name_of_table(struct object_types *types, uint64_t table)
{
	static const char prefix[] = "typeinfo name for ";
	char mangled[MAX_NAME + 4] = "_ZTS", *name = NULL;
	_cleanup_free_ char *full = NULL;
	uint64_t to_top, info, words[2];

	if (types->name_bytes >= MAX_NAME_BYTES ||
	    !snapshot_word(types->snapshot, table - 16, &to_top) || to_top != 0 ||
	    !snapshot_word(types->snapshot, table - 8, &info) || info % 8 ||
	    !constant_region(types, info) ||
	    !snapshot_read(types->snapshot, info, words, sizeof(words)) ||
	    !constant_region(types, words[0]) || !read_name(types, words[1], mangled + 4, MAX_NAME))
		return NULL;
	/* A star marks names that are compared by address. */
	if (mangled[4] == '*')
		memmove(mangled + 4, mangled + 5, strlen(mangled + 5) + 1);
	full = demangle(mangled);
	types->name_bytes += strlen(mangled) + (full ? strlen(full) : DEMANGLE_MAX_RESULT);
	if (full && strncmp(full, prefix, strlen(prefix)) == 0)
		name = strdup(full + strlen(prefix));
	return name;
}

/* The name of what may be a table, from now on; NULL: it is none. */
static const char *look_up(struct object_types *types, uint64_t address)
{
	struct known_table *table;

	HASH_FIND(hh, types->by_address, &address, sizeof(address), table);
	if (table)
		return table->name;
	if (HASH_COUNT(types->by_address) >= MAX_TABLES)
		return NULL;
	table = calloc(1, sizeof(*table));
	if (!table)
		return NULL;
	table->address = address;
	table->name = name_of_table(types, address);
	HASH_ADD(hh, types->by_address, address, sizeof(table->address), table);
	if (!hash_added(table)) {
		free(table->name);
		free(table);
		return NULL;
	}
	return table->name;
}

static bool is_in(const struct scan_region *region, uint64_t address)
{
	return region && address - region->start < region->end - region->start;
}

/* Nearly all words lead to one of a few regions. */
static bool may_be_table(const struct object_types *types, struct type_cache *cache,
			 uint64_t address)
{
	const struct scan_region *region;

	if (is_in(cache->constant, address))
		return true;
	if (is_in(cache->other, address))
		return false;
	region = snapshot_region(types->snapshot, address);
	if (region && region == constant_region(types, address))
		cache->constant = region;
	else if (region)
		cache->other = region;
	return region && region == cache->constant;
}

const char *object_type_cached(struct object_types *types, struct type_cache *cache,
			       const struct heap_block_view *block)
{
	uint64_t address = block->size_bytes >= 8 ? load_word(block->bytes) : 0;
	size_t place = address * 0x9e3779b97f4a7c15ull >> (64 - TYPE_CACHE_BITS);

	if (address % 8 || !address || !may_be_table(types, cache, address))
		return NULL;
	if (cache->known[place].address != address) {
		pthread_mutex_lock(&types->lock);
		cache->known[place].name = look_up(types, address);
		pthread_mutex_unlock(&types->lock);
		cache->known[place].address = address;
	}
	return cache->known[place].name;
}

const char *object_type(struct object_types *types, const struct heap_block_view *block)
{
	return object_type_cached(types, &types->own, block);
}
