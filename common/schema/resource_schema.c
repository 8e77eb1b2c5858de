/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/schema/resource_schema.h"

#include "common/scope.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define SEPARATOR  "__"
#define FAIL_INFIX "_fail_"
#define STAGE_MAX  (sizeof("_exit99") - 1)
#define HASH_CHARS 9 /* "_xxxxxxxx" */

static const char *const role_names[RESOURCE_NR_ROLES] = {
	[RESOURCE_GIVE] = "give", [RESOURCE_TAKE] = "take",   [RESOURCE_NEW] = "new",
	[RESOURCE_REF] = "ref",	  [RESOURCE_UNREF] = "unref",
};

static const char *const stage_suffixes[] = {
	[RESOURCE_WHOLE] = "",
	[RESOURCE_ENTRY] = "_call",
	[RESOURCE_RETURN] = "_ret",
	[RESOURCE_EXIT] = "_exit",
};

static const char *const failure_names[RESOURCE_NR_FAILURES] = {
	[RESOURCE_FAILS_EQUAL] = "eq",
	[RESOURCE_FAILS_UNEQUAL] = "ne",
	[RESOURCE_FAILS_BELOW] = "lt",
	[RESOURCE_FAILS_ABOVE] = "gt",
};

void resource_schemas_deinit(struct resource_schemas *schemas)
{
	for (size_t i = 0; i < schemas->nr_kinds; i++)
		free(schemas->kinds[i]);
	for (size_t i = 0; i < schemas->nr_calls; i++)
		free(schemas->calls[i]);
	free(schemas->calls);
	*schemas = (struct resource_schemas){0};
}

/* isalnum() alone depends on the locale; the kernel accepts ASCII only. */
static bool is_name_char(char c)
{
	return (unsigned char)c < 0x80 && (isalnum((unsigned char)c) || c == '_');
}

bool resource_kind_is_valid(const char *name, size_t len)
{
	if (len == 0 || len > RESOURCE_KIND_MAX || !is_name_char(name[0]) ||
	    isdigit((unsigned char)name[0]))
		return false;
	for (size_t i = 0; i < len; i++)
		if (!is_name_char(name[i]) ||
		    (name[i] == '_' && (i + 1 == len || name[i + 1] == '_')))
			return false;
	return true;
}

/* Parses "_exit" or "_exitNUMBER"; the number of the first exit, 0, is left out. */
static bool parse_stage(const char *text, size_t len, struct resource_event *ret)
{
	unsigned int number = 0;
	size_t end = len;

	while (end > 0 && isdigit((unsigned char)text[end - 1]))
		end--;
	if (len - end > 2 || (end < len && text[end] == '0'))
		return false;
	for (size_t i = end; i < len; i++)
		number = 10 * number + (unsigned int)(text[i] - '0');
	for (size_t stage = 0; stage < ARRAY_SIZE(stage_suffixes); stage++) {
		if (strlen(stage_suffixes[stage]) != end ||
		    memcmp(text, stage_suffixes[stage], end) != 0)
			continue;
		ret->stage = (enum resource_stage)stage;
		ret->exit_number = number;
		return number == 0 || ret->stage == RESOURCE_EXIT;
	}
	return false;
}

static bool parse_role(const char *word, size_t len, struct resource_event *ret)
{
	for (enum resource_role role = 0; role < RESOURCE_NR_ROLES; role++) {
		size_t role_len = strlen(role_names[role]);

		if (len < role_len || memcmp(word, role_names[role], role_len) != 0 ||
		    !parse_stage(word + role_len, len - role_len, ret))
			continue;
		ret->role = role;
		return true;
	}
	return false;
}

/* A pool's probe may be in several places, which are numbered: all are the same call. */
static void strip_number(char *function)
{
	static const char *const numbered[] = {RESOURCE_POOL_GIVES "_", RESOURCE_POOL_TAKES "_"};

	for (size_t i = 0; i < ARRAY_SIZE(numbered); i++) {
		size_t len = strlen(numbered[i]);

		if (strncmp(function, numbered[i], len) == 0 && function[len] &&
		    strspn(function + len, "0123456789") == strlen(function + len))
			function[len - 1] = '\0';
	}
}

int resource_event_parse(const char *name, struct resource_event *ret)
{
	const char *role = strstr(name, SEPARATOR), *function;

	*ret = (struct resource_event){0};
	if (!role || strlen(name) > RESOURCE_EVENT_MAX ||
	    !resource_kind_is_valid(name, (size_t)(role - name)))
		return -ENOENT;
	memcpy(ret->kind, name, (size_t)(role - name));
	role += strlen(SEPARATOR);
	function = strstr(role, SEPARATOR);
	if (!function || !parse_role(role, (size_t)(function - role), ret))
		return -ENOENT;
	function += strlen(SEPARATOR);
	if (!*function)
		return -ENOENT;
	snprintf(ret->function, sizeof(ret->function), "%s", function);
	strip_number(ret->function);
	return 0;
}

static uint32_t hash_name(const char *name)
{
	uint32_t hash = 2166136261u; /* FNV-1a */

	for (; *name; name++) {
		hash ^= (unsigned char)*name;
		hash *= 16777619u;
	}
	return hash;
}

void resource_event_format(const struct resource_event *event,
			   char buffer[static RESOURCE_EVENT_MAX + 1])
{
	const char *role = role_names[event->role], *stage = stage_suffixes[event->stage];
	/* The same room for all stages, so that a function has the same name in all of them. */
	size_t room = RESOURCE_EVENT_MAX - strlen(event->kind) - strlen(role) - STAGE_MAX -
		      2 * strlen(SEPARATOR);
	char number[sizeof("99")] = "";
	const char *from = event->function;
	bool is_changed = strlen(from) > room;
	size_t len;

	if (event->exit_number)
		snprintf(number, sizeof(number), "%u", event->exit_number % 100);
	len = (size_t)snprintf(buffer, RESOURCE_EVENT_MAX + 1, "%s" SEPARATOR "%s%s%s" SEPARATOR,
			       event->kind, role, stage, number);

	for (const char *c = from; *c; c++)
		is_changed |= !is_name_char(*c);
	if (is_changed)
		room -= HASH_CHARS;
	for (size_t i = 0; i < room && from[i]; i++)
		buffer[len++] = is_name_char(from[i]) ? from[i] : '_';
	buffer[len] = '\0';
	if (is_changed)
		snprintf(buffer + len, RESOURCE_EVENT_MAX + 1 - len, "_%08" PRIx32,
			 hash_name(from));
}

void resource_return_field(const struct resource_call *call,
			   char buffer[static RESOURCE_FIELD_MAX + 1])
{
	const char *base =
		call->place == RESOURCE_RETURNED ? RESOURCE_FIELD_HANDLE : PROBE_FIELD_RET;
	bool is_negative = call->failure_value < 0;

	if (call->failure == RESOURCE_FAILS_BY_NULL)
		snprintf(buffer, RESOURCE_FIELD_MAX + 1, "%s", base);
	else
		snprintf(buffer, RESOURCE_FIELD_MAX + 1, "%s" FAIL_INFIX "%s_%s%" PRIu32, base,
			 failure_names[call->failure], is_negative ? "m" : "",
			 (uint32_t)(is_negative ? -call->failure_value : call->failure_value));
}

/* "lt_0", "eq_m1" */
static bool parse_failure(const char *text, struct resource_call *call)
{
	for (int i = RESOURCE_FAILS_EQUAL; i < RESOURCE_NR_FAILURES; i++) {
		size_t len = strlen(failure_names[i]);
		bool is_negative;
		uint64_t value;
		char *end;

		if (strncmp(text, failure_names[i], len) != 0 || text[len] != '_')
			continue;
		text += len + 1;
		is_negative = *text == 'm';
		text += is_negative;
		if (!isdigit((unsigned char)*text))
			return false;
		value = strtoull(text, &end, 10);
		if (*end || value > INT32_MAX)
			return false;
		call->failure = (enum resource_failure)i;
		call->failure_value = is_negative ? -(int64_t)value : (int64_t)value;
		return true;
	}
	return false;
}

bool resource_return_field_parse(const char *name, struct resource_call *call)
{
	size_t len = strcspn(name, "_");
	bool is_handle;

	is_handle = len == strlen(RESOURCE_FIELD_HANDLE) &&
		    memcmp(name, RESOURCE_FIELD_HANDLE, len) == 0;
	if (!is_handle &&
	    (len != strlen(PROBE_FIELD_RET) || memcmp(name, PROBE_FIELD_RET, len) != 0))
		return false;
	if (name[len] == '\0')
		call->failure = RESOURCE_FAILS_BY_NULL;
	else if (strncmp(name + len, FAIL_INFIX, strlen(FAIL_INFIX)) != 0 ||
		 !parse_failure(name + len + strlen(FAIL_INFIX), call))
		return false;
	if (is_handle)
		call->place = RESOURCE_RETURNED;
	return true;
}

static bool role_counts_refs(enum resource_role role)
{
	return role == RESOURCE_NEW || role == RESOURCE_REF || role == RESOURCE_UNREF;
}

static int add_kind(struct resource_schemas *schemas, const struct resource_event *event,
		    const struct resource_kind **ret)
{
	bool counts_refs = role_counts_refs(event->role);
	struct resource_kind *kind;

	for (size_t i = 0; i < schemas->nr_kinds; i++) {
		*ret = schemas->kinds[i];
		if ((*ret)->counts_refs == counts_refs && strcmp((*ret)->name, event->kind) == 0)
			return 0;
	}
	if (schemas->nr_kinds == RESOURCE_NAMED_KINDS)
		return -E2BIG;
	kind = calloc(1, sizeof(*kind));
	if (!kind)
		return -ENOMEM;
	memcpy(kind->name, event->kind, sizeof(kind->name));
	kind->counts_refs = counts_refs;
	schemas->kinds[schemas->nr_kinds++] = kind;
	kind->number = (unsigned int)schemas->nr_kinds;
	*ret = kind;
	return 0;
}

static void init_call(struct resource_call *call, const struct resource_kind *kind,
		      const struct resource_event *event)
{
	*call = (struct resource_call){
		.kind = kind,
		.role = event->role,
		.has_return = event->stage != RESOURCE_WHOLE,
	};
	memcpy(call->function, event->function, sizeof(call->function));
	call->schema = (struct probe_schema){
		.function = call->function,
		.effect = call->has_return ? RESOURCE_AT_RETURN : RESOURCE_AT_ENTRY,
		.nr_args = 2,
		.arg_names = {RESOURCE_FIELD_HANDLE, RESOURCE_FIELD_SIZE},
		.size_arg = 1,
		.count_arg = -1,
		.block_arg = 0,
	};
}

int resource_schemas_add(struct resource_schemas *schemas, const struct resource_event *event,
			 struct resource_call **ret)
{
	const struct resource_kind *kind;
	struct resource_call *call, **grown;
	int err = add_kind(schemas, event, &kind);

	if (err)
		return err;
	for (size_t i = 0; i < schemas->nr_calls; i++) {
		call = schemas->calls[i];
		if (call->kind == kind && call->role == event->role &&
		    call->has_return == (event->stage != RESOURCE_WHOLE) &&
		    strcmp(call->function, event->function) == 0) {
			*ret = call;
			return 0;
		}
	}
	if (schemas->nr_calls == RESOURCE_MAX_CALLS)
		return -E2BIG;
	grown = reallocarray(schemas->calls, schemas->nr_calls + 1, sizeof(struct resource_call *));
	if (!grown)
		return -ENOMEM;
	schemas->calls = grown;
	call = malloc(sizeof(*call));
	if (!call)
		return -ENOMEM;
	init_call(call, kind, event);
	grown[schemas->nr_calls++] = call;
	*ret = call;
	return 0;
}

/* Compilers clear the upper half of a register that holds an int; the ABI leaves it undefined. */
static int64_t as_int(uint64_t value)
{
	return value >> 32 ? (int64_t)value : (int64_t)(int32_t)value;
}

bool resource_call_failed(const struct resource_call *call, uint64_t ret, uint64_t handle)
{
	switch (call->failure) {
	case RESOURCE_FAILS_EQUAL:
		return as_int(ret) == call->failure_value;
	case RESOURCE_FAILS_UNEQUAL:
		return as_int(ret) != call->failure_value;
	case RESOURCE_FAILS_BELOW:
		return as_int(ret) < call->failure_value;
	case RESOURCE_FAILS_ABOVE:
		return as_int(ret) > call->failure_value;
	default:
		return handle == 0;
	}
}
