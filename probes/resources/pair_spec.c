/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/resources/pair_spec.h"

#include "common/scope.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define SIDES " / "
#define BLANK " \t"

/* The state of a parse: the result, and the reason for a refusal. */
struct parse {
	struct pair_spec *spec;
	char *why;
};

static int refuse(const struct parse *parse, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static int refuse(const struct parse *parse, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(parse->why, PAIR_WHY_MAX, format, args);
	va_end(args);
	return -EINVAL;
}

static char *trim(char *text)
{
	size_t len;

	text += strspn(text, BLANK);
	len = strlen(text);
	while (len > 0 && strchr(BLANK, text[len - 1]))
		text[--len] = '\0';
	return text;
}

/* Parses "arg1". Returns the number, or 0. */
static int parse_arg(const char *text)
{
	if (strncmp(text, "arg", 3) != 0 || text[3] < '1' || text[3] > '0' + PAIR_MAX_ARGS ||
	    text[4])
		return 0;
	return text[3] - '0';
}

/* Parses a handle. Returns false if @text is not one. */
static bool parse_handle(const char *text, struct pair_call *call)
{
	bool gives = call->role == RESOURCE_GIVE || call->role == RESOURCE_NEW;

	if (strcmp(text, "ret") == 0) {
		call->place = RESOURCE_RETURNED;
		return true;
	}
	call->handle_arg = parse_arg(text + (*text == '*'));
	call->is_pointed_to = *text == '*';
	call->place = call->is_pointed_to && gives ? RESOURCE_STORED : RESOURCE_IN_ARGUMENT;
	return call->handle_arg != 0;
}

static int parse_failure(const struct parse *parse, const char *text, struct pair_call *call)
{
	static const struct {
		const char *sign;
		enum resource_failure failure;
	} signs[] = {{"!=", RESOURCE_FAILS_UNEQUAL},
		     {"=", RESOURCE_FAILS_EQUAL},
		     {"<", RESOURCE_FAILS_BELOW},
		     {">", RESOURCE_FAILS_ABOVE}};
	const char *number = text + strlen("fail");
	char *end;
	long value;

	for (size_t i = 0; i < ARRAY_SIZE(signs); i++) {
		size_t len = strlen(signs[i].sign);

		if (strncmp(number, signs[i].sign, len) != 0)
			continue;
		number += len;
		errno = 0;
		value = strtol(number, &end, 10);
		if (end == number || *end || errno || isspace((unsigned char)*number) ||
		    *number == '+' || value > INT_MAX || value < -INT_MAX)
			break;
		call->failure = signs[i].failure;
		call->failure_value = value;
		return 0;
	}
	return refuse(parse,
		      "\"%.40s\" is not a failure such as fail=0, fail!=0, fail<0 or fail=-1",
		      text);
}

static int parse_attribute(const struct parse *parse, const char *text, struct pair_call *call)
{
	bool gives = call->role == RESOURCE_GIVE || call->role == RESOURCE_NEW;

	if (strncmp(text, "size=", 5) == 0) {
		call->size_arg = parse_arg(text + 5);
		if (!call->size_arg)
			return refuse(parse, "\"%.40s\" is not a size such as size=arg2", text);
	} else if (strncmp(text, "fail", 4) == 0) {
		int err = parse_failure(parse, text, call);

		if (err)
			return err;
	} else {
		return refuse(parse, "\"%.40s\" is neither size= nor fail=", text);
	}
	if (!gives)
		return refuse(
			parse,
			"\"%.40s\": only functions that give a resource have a size or can fail",
			text);
	return 0;
}

static bool parse_number(const char *text, int base, uint64_t *ret)
{
	char *end;

	errno = 0;
	*ret = strtoull(text, &end, base);
	return isdigit((unsigned char)*text) && !*end && !errno && *ret <= INT64_MAX;
}

/* Parses SYMBOL, FILE+OFFSET or SOURCE:LINE. */
static int parse_function(const struct parse *parse, char *text, struct pair_call *call)
{
	char *plus = strrchr(text, '+'), *colon = strrchr(text, ':');

	if (colon) {
		call->naming = PAIR_BY_LINE;
		*colon = '\0';
		if (!parse_number(colon + 1, 10, &call->number) || call->number == 0 ||
		    call->number > INT_MAX)
			return refuse(parse,
				      "\"%.60s:%.20s\": after the colon must be ret, arg1 to arg6, "
				      "*arg1 to *arg6, or a line number",
				      text, colon + 1);
	} else if (plus) {
		call->naming = PAIR_BY_OFFSET;
		*plus = '\0';
		if (!parse_number(plus + 1, 0, &call->number))
			return refuse(parse, "\"%.20s\" is not an offset in a file", plus + 1);
	}
	if (!*text)
		return refuse(parse, "a function is missing");
	for (const char *c = text; *c; c++)
		if ((unsigned char)*c <= ' ' || *c == 0x7f)
			return refuse(parse, "a function's name cannot have blanks");
	call->name = strdup(text);
	return call->name ? 0 : -ENOMEM;
}

/* Parses one call. If it has no handle, only its function is set, and *@ret_open. */
static int parse_call(const struct parse *parse, char *text, struct pair_call *call, bool *ret_open)
{
	char *saved, *function = strtok_r(text, BLANK, &saved), *attribute, *colon;
	bool has_handle;
	int err;

	if (!function)
		return refuse(parse, "a function is missing");
	colon = strrchr(function, ':');
	has_handle = colon && parse_handle(colon + 1, call);
	*ret_open = !has_handle;
	if (has_handle)
		*colon = '\0';
	err = parse_function(parse, function, call);
	while (!err && (attribute = strtok_r(NULL, BLANK, &saved)))
		err = has_handle ? parse_attribute(parse, attribute, call)
				 : refuse(parse,
					  "\"%.40s\" follows a function without "
					  "\":ret\" or \":arg1\"",
					  attribute);
	return err;
}

static int check_call(const struct parse *parse, const struct pair_call *call)
{
	if (call->place == RESOURCE_RETURNED &&
	    (call->role == RESOURCE_TAKE || call->role == RESOURCE_UNREF))
		return refuse(parse, "%.60s:ret: a function gets what it takes in an argument",
			      call->name);
	return 0;
}

/* Copies the handle of the last call to the calls from @first on, which have none. */
static void share_handle(struct pair_spec *spec, size_t first)
{
	const struct pair_call *last = &spec->calls[spec->nr - 1];

	for (size_t i = first; i + 1 < spec->nr; i++) {
		struct pair_call call = *last;

		call.naming = spec->calls[i].naming;
		call.name = spec->calls[i].name;
		call.number = spec->calls[i].number;
		spec->calls[i] = call;
	}
}

/* A function that returns an object makes it; one that gets it in an argument adds a reference. */
static enum resource_role role_of(const struct pair_call *call, bool counts_refs, bool is_second)
{
	if (!counts_refs)
		return is_second ? RESOURCE_TAKE : RESOURCE_GIVE;
	if (is_second)
		return RESOURCE_UNREF;
	return call->place == RESOURCE_IN_ARGUMENT ? RESOURCE_REF : RESOURCE_NEW;
}

static int parse_side(const struct parse *parse, char *text, bool is_second)
{
	struct pair_spec *spec = parse->spec;
	size_t first = spec->nr;
	bool is_open = false;
	char *word;

	while ((word = strsep(&text, "|"))) {
		struct pair_call *call = &spec->calls[spec->nr];
		int err;

		if (spec->nr == PAIR_MAX_CALLS)
			return refuse(parse, "more than %d functions", PAIR_MAX_CALLS);
		spec->nr++;
		call->role = is_second ? RESOURCE_TAKE : RESOURCE_GIVE;
		err = parse_call(parse, word, call, &is_open);
		if (err)
			return err;
		if (is_open)
			continue;
		call->role = role_of(call, spec->counts_refs, is_second);
		err = check_call(parse, call);
		if (err)
			return err;
		share_handle(spec, first);
		first = spec->nr;
	}
	return is_open ? refuse(parse,
				"the handle of %.60s is missing: add \":ret\", "
				"\":arg1\" or \":*arg1\"",
				spec->calls[spec->nr - 1].name)
		       : 0;
}

/* Parses "file=", and moves *@text to the first call. */
static int parse_kind(const struct parse *parse, char **text)
{
	size_t len = strcspn(*text, "=:|+ \t"), sign = len + strspn(*text + len, BLANK);

	if ((*text)[sign] != '=')
		return 0;
	if (!resource_kind_is_valid(*text, len))
		return refuse(parse,
			      "\"%.*s\" cannot name a kind: use a letter, then letters, digits and "
			      "single '_', %d characters at most",
			      (int)(len < 40 ? len : 40), *text, RESOURCE_KIND_MAX);
	memcpy(parse->spec->kind, *text, len);
	*text = trim(*text + sign + 1);
	return 0;
}

/* Names the kind after the first function, as far as that makes a valid name. */
static void name_kind(struct pair_spec *spec)
{
	const struct pair_call *call = &spec->calls[0];
	const char *from = call->name, *slash = strrchr(from, '/');
	size_t len = 0;

	for (from = slash ? slash + 1 : from; *from && len < RESOURCE_KIND_MAX; from++) {
		bool is_word = (unsigned char)*from < 0x80 && isalnum((unsigned char)*from);

		if (is_word && (len > 0 || isalpha((unsigned char)*from)))
			spec->kind[len++] = *from;
		else if (!is_word && len > 0 && spec->kind[len - 1] != '_')
			spec->kind[len++] = '_';
	}
	while (len > 0 && spec->kind[len - 1] == '_')
		len--;
	spec->kind[len] = '\0';
	if (len == 0)
		snprintf(spec->kind, sizeof(spec->kind), "resource");
}

int pair_spec_parse(const char *text, bool counts_refs, struct pair_spec *ret,
		    char why[static PAIR_WHY_MAX])
{
	const struct parse parse = {ret, why};
	_cleanup_free_ char *copy = NULL;
	char *first, *second;
	int err;

	*ret = (struct pair_spec){.counts_refs = counts_refs};
	*why = '\0';
	if (strlen(text) > PAIR_MAX_TEXT)
		return refuse(&parse, "it is longer than %d characters", PAIR_MAX_TEXT);
	copy = strdup(text);
	if (!copy)
		return -ENOMEM;
	second = strstr(copy, SIDES);
	if (!second || strstr(second + 1, SIDES))
		return refuse(
			&parse,
			"one \" / \", with blanks, must separate the functions that %s from those "
			"that %s",
			counts_refs ? "add references" : "give",
			counts_refs ? "drop them" : "take");
	*second = '\0';
	second += strlen(SIDES);
	first = trim(copy);
	err = parse_kind(&parse, &first);
	if (!err)
		err = parse_side(&parse, first, false);
	if (!err)
		err = parse_side(&parse, trim(second), true);
	if (!err && !*ret->kind)
		name_kind(ret);
	return err;
}

void pair_spec_deinit(struct pair_spec *spec)
{
	for (size_t i = 0; i < spec->nr; i++)
		free(spec->calls[i].name);
	spec->nr = 0;
}
