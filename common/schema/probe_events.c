/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/schema/probe_events.h"

#include "common/schema/probe_symbols.h"
#include "common/scope.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

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

/* An event may be named after its row, or after the symbol that it was put on. */
static const struct probe_schema *find_function(const char *name, size_t len)
{
	const struct probe_schema *schema;
	char symbol[PROBE_SYMBOL_MAX];
	struct probe_symbol found;

	if (len >= sizeof(symbol))
		return NULL;
	memcpy(symbol, name, len);
	symbol[len] = '\0';
	schema = probe_schema_find(symbol);
	if (!schema && probe_symbol_find(symbol, NULL, &found))
		schema = found.schema;
	return schema;
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

	for (size_t i = 0; i < ARRAY_SIZE(point_suffixes); i++) {
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
