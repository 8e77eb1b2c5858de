/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/schema/probe_schema.h"

#include "common/schema/probe_symbols.h"

#include <ctype.h>
#include <errno.h>

/* Prototypes and argument names: glibc's malloc/malloc.c (2.36). */
static const struct probe_schema schema_table[] = {
	{"malloc", HEAP_ALLOC, 1, {"bytes"}, 0, -1, -1, FAMILY_MALLOC},
	{"calloc", HEAP_ALLOC, 2, {"n", "elem_size"}, 1, 0, -1, FAMILY_MALLOC},
	{"realloc", HEAP_REALLOC, 2, {"oldmem", "bytes"}, 1, -1, 0, FAMILY_MALLOC},
	{"aligned_alloc", HEAP_ALLOC, 2, {"alignment", "bytes"}, 1, -1, -1, FAMILY_MALLOC},
	{"memalign", HEAP_ALLOC, 2, {"alignment", "bytes"}, 1, -1, -1, FAMILY_MALLOC},
	{"posix_memalign",
	 HEAP_ALLOC_TO_PTR,
	 3,
	 {"memptr", "alignment", "size"},
	 2,
	 -1,
	 0,
	 FAMILY_MALLOC},
	{"valloc", HEAP_ALLOC, 1, {"bytes"}, 0, -1, -1, FAMILY_MALLOC},
	{"pvalloc", HEAP_ALLOC, 1, {"bytes"}, 0, -1, -1, FAMILY_MALLOC},
	{"free", HEAP_RELEASE, 1, {"mem"}, -1, -1, 0, FAMILY_MALLOC},
	{"reallocarray", HEAP_REALLOC, 3, {"oldmem", "n", "elem_size"}, 2, 1, 0, FAMILY_MALLOC},
	/* jemalloc's own (jemalloc(3)); flags and sizes of what is freed are not recorded. */
	{"mallocx", HEAP_ALLOC, 1, {"bytes"}, 0, -1, -1, FAMILY_MALLOC},
	{"rallocx", HEAP_REALLOC, 2, {"oldmem", "bytes"}, 1, -1, 0, FAMILY_MALLOC},
	{"dallocx", HEAP_RELEASE, 1, {"mem"}, -1, -1, 0, FAMILY_MALLOC},
	{"sdallocx", HEAP_RELEASE, 1, {"mem"}, -1, -1, 0, FAMILY_MALLOC},
	/* C++'s operators, each in all its forms: the size, or the block, comes first in all. */
	{"operator_new", HEAP_ALLOC, 1, {"bytes"}, 0, -1, -1, FAMILY_NEW},
	{"operator_new_array", HEAP_ALLOC, 1, {"bytes"}, 0, -1, -1, FAMILY_NEW_ARRAY},
	{"operator_delete", HEAP_RELEASE, 1, {"mem"}, -1, -1, 0, FAMILY_NEW},
	{"operator_delete_array", HEAP_RELEASE, 1, {"mem"}, -1, -1, 0, FAMILY_NEW_ARRAY},
	/* Where it is not to be told, or not asked, which of several functions was called. */
	{"new", HEAP_ALLOC, 1, {"bytes"}, 0, -1, -1, FAMILY_ANY},
	{"delete", HEAP_RELEASE, 1, {"mem"}, -1, -1, 0, FAMILY_ANY},
	{"malloc_or_new", HEAP_ALLOC, 1, {"bytes"}, 0, -1, -1, FAMILY_ANY},
	{"free_or_delete", HEAP_RELEASE, 1, {"mem"}, -1, -1, 0, FAMILY_ANY},
};

const struct probe_schema probe_schema_mark = {"leak_mark", HEAP_MARK, 1,  {"text"},
					       -1,	    -1,	       -1, FAMILY_ANY};

/* Longest first, so that "_ret__return" is not taken for "__return". */
static const struct {
	const char *suffix;
	enum probe_point point;
} point_suffixes[] = {
	{"_ret__return", PROBE_RETURN},
	{"__return", PROBE_RETURN},
	{"_ret", PROBE_RETURN},
	{"_store", PROBE_STORE},
	{"_call", PROBE_CALL},
	{"_exit", PROBE_EXIT},
	{"", PROBE_ENTRY},
};

const struct probe_schema *probe_schema_table(size_t *ret_nr)
{
	*ret_nr = sizeof(schema_table) / sizeof(schema_table[0]);
	return schema_table;
}

static const struct probe_schema *find_n(const char *function, size_t len)
{
	for (size_t i = 0; i < sizeof(schema_table) / sizeof(schema_table[0]); i++) {
		const char *name = schema_table[i].function;

		if (strlen(name) == len && memcmp(name, function, len) == 0)
			return &schema_table[i];
	}
	return NULL;
}

/* An event may be named after its row, or after the symbol that it was put on. */
static const struct probe_schema *find_function(const char *name, size_t len)
{
	const struct probe_schema *schema = find_n(name, len);
	char symbol[PROBE_SYMBOL_MAX];
	struct probe_symbol found;

	if (schema || len >= sizeof(symbol))
		return schema;
	memcpy(symbol, name, len);
	symbol[len] = '\0';
	return probe_symbol_find(symbol, NULL, &found) ? found.schema : NULL;
}

const struct probe_schema *probe_schema_find(const char *function)
{
	return find_n(function, strlen(function));
}

/* The length of @name without a trailing "_NUMBER". */
static size_t length_without_number(const char *name)
{
	size_t len = strlen(name), end = len;

	while (end > 0 && isdigit((unsigned char)name[end - 1]))
		end--;
	return end < len && end > 1 && name[end - 1] == '_' ? end - 1 : len;
}

bool probe_schema_is_mark(const char *event_name)
{
	size_t len = strlen(probe_schema_mark.function);

	return length_without_number(event_name) == len &&
	       memcmp(event_name, probe_schema_mark.function, len) == 0;
}

int probe_schema_parse_event(const char *event_name, const struct probe_schema **ret_schema,
			     enum probe_point *ret_point)
{
	size_t len = length_without_number(event_name);

	for (size_t i = 0; i < sizeof(point_suffixes) / sizeof(point_suffixes[0]); i++) {
		size_t suffix_len = strlen(point_suffixes[i].suffix);
		const struct probe_schema *schema;

		if (len <= suffix_len || memcmp(event_name + len - suffix_len,
						point_suffixes[i].suffix, suffix_len) != 0)
			continue;
		schema = find_function(event_name, len - suffix_len);
		if (!schema)
			continue;
		*ret_schema = schema;
		*ret_point = point_suffixes[i].point;
		return 0;
	}
	return -ENOENT;
}

int probe_schema_event_name(const char *function, enum probe_point point, char *buffer, size_t size)
{
	static const char *const suffixes[] = {
		[PROBE_ENTRY] = "",	[PROBE_RETURN] = "_ret", [PROBE_STORE] = "_store",
		[PROBE_CALL] = "_call", [PROBE_EXIT] = "_exit",
	};
	int len = snprintf(buffer, size, "%s%s", function, suffixes[point]);

	return len < 0 || (size_t)len >= size ? -E2BIG : 0;
}
