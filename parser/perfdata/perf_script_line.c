/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/perfdata/perf_script_line.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NSEC_PER_SEC  1000000000u
#define MAX_SECONDS   (UINT64_MAX / NSEC_PER_SEC - 1)
#define TIME_DIGITS   9 /* of nanoseconds */
#define UNKNOWN_FRAME "[unknown]"

static const char *skip_blanks(const char *text)
{
	while (*text == ' ' || *text == '\t')
		text++;
	return text;
}

/* Parses a decimal number of at most @max, and advances *@text. */
static bool parse_decimal(const char **text, uint64_t max, uint64_t *ret)
{
	const char *p = *text;
	uint64_t value = 0;

	if (!isdigit((unsigned char)*p))
		return false;
	for (; isdigit((unsigned char)*p); p++) {
		uint64_t digit = (uint64_t)(*p - '0');

		if (value > (max - digit) / 10)
			return false;
		value = 10 * value + digit;
	}
	*text = p;
	*ret = value;
	return true;
}

static bool parse_hex(const char **text, uint64_t *ret)
{
	char *end;

	if (!isxdigit((unsigned char)**text))
		return false;
	errno = 0;
	*ret = strtoull(*text, &end, 16);
	if (errno)
		return false;
	*text = end;
	return true;
}

static bool parse_char(const char **text, char c)
{
	if (**text != c)
		return false;
	(*text)++;
	return true;
}

/* Parses "11967.073719:": six digits, or nine with --ns. */
static bool parse_time(const char **text, uint64_t *ret_ns)
{
	const char *fraction;
	uint64_t seconds, part;

	if (!parse_decimal(text, MAX_SECONDS, &seconds) || !parse_char(text, '.'))
		return false;
	fraction = *text;
	if (!parse_decimal(text, NSEC_PER_SEC - 1, &part) || *text - fraction > TIME_DIGITS)
		return false;
	for (ptrdiff_t digits = *text - fraction; digits < TIME_DIGITS; digits++)
		part *= 10;
	*ret_ns = seconds * NSEC_PER_SEC + part;
	return parse_char(text, ':');
}

/* Parses "4165/4170 [001] 11967.073719:", which follows the command's name. Returns the rest. */
static const char *parse_origin(const char *text, struct perf_script_event *ret)
{
	uint64_t id, cpu;

	ret->pid = -1;
	if (!parse_decimal(&text, INT32_MAX, &id))
		return NULL;
	ret->tid = (pid_t)id;
	if (parse_char(&text, '/')) {
		ret->pid = (pid_t)id;
		if (!parse_decimal(&text, INT32_MAX, &id))
			return NULL;
		ret->tid = (pid_t)id;
	}
	if (*text != ' ' && *text != '\t')
		return NULL;
	text = skip_blanks(text);
	if (parse_char(&text, '[')) {
		if (!parse_decimal(&text, UINT32_MAX, &cpu) || !parse_char(&text, ']'))
			return NULL;
		ret->cpu = (uint32_t)cpu;
		text = skip_blanks(text);
	}
	return parse_time(&text, &ret->time_ns) ? text : NULL;
}

/* Parses "(7f40)" or "(7f40 <- 55b7)". */
static const char *parse_addresses(const char *text, struct perf_script_event *ret)
{
	const char *p = text;

	if (!parse_char(&p, '(') || !parse_hex(&p, &ret->address))
		return text;
	if (strncmp(p, " <- ", 4) == 0) {
		p += 4;
		if (!parse_hex(&p, &ret->return_address))
			return text;
	}
	if (!parse_char(&p, ')'))
		return text;
	ret->has_address = true;
	return skip_blanks(p);
}

/* Parses "1 probe_libc:malloc: (7f40) bytes=32": maybe a period, then group, name and the rest. */
static void parse_tracepoint(char *text, struct perf_script_event *ret)
{
	char *end, *colon;
	const char *p = skip_blanks(text);
	uint64_t period;

	if (parse_decimal(&p, UINT64_MAX, &period))
		p = skip_blanks(p);
	text += p - text;
	ret->rest = text;
	end = text + strcspn(text, " \t");
	if (end - text < 4 || end[-1] != ':')
		return;
	colon = memchr(text, ':', (size_t)(end - text - 1));
	if (!colon || colon == text || colon + 1 == end - 1)
		return;
	if (*end)
		*end++ = '\0';
	text[strlen(text) - 1] = '\0';
	ret->name = colon + 1;
	p = parse_addresses(skip_blanks(end), ret);
	ret->rest = end + (p - end);
}

/* Looks for the first position where an origin can be parsed. The command's name is before it. */
bool perf_script_parse_event(char *line, struct perf_script_event *ret)
{
	char *comm = line + (skip_blanks(line) - line);

	for (char *p = comm; *p; p++) {
		const char *behind;
		char *end = p;

		if (p == comm || (p[-1] != ' ' && p[-1] != '\t') || !isdigit((unsigned char)*p))
			continue;
		*ret = (struct perf_script_event){.comm = comm};
		behind = parse_origin(p, ret);
		if (!behind)
			continue;
		while (end > comm && (end[-1] == ' ' || end[-1] == '\t'))
			end--;
		*end = '\0';
		parse_tracepoint(line + (behind - line), ret);
		return true;
	}
	return false;
}

/* Cuts "+0x1a" off @text. Returns false if it does not end like that. */
static bool cut_offset(char *text, uint64_t *ret)
{
	char *plus = strrchr(text, '+');
	const char *p = plus ? plus + 1 : NULL;
	uint64_t offset;

	if (!p || p[0] != '0' || p[1] != 'x')
		return false;
	p += 2;
	if (!parse_hex(&p, &offset) || *p)
		return false;
	*plus = '\0';
	*ret = offset;
	return true;
}

/* Parses "malloc+0x1a". */
static void parse_symbol(char *text, struct perf_script_frame *ret)
{
	if (!*text || strcmp(text, UNKNOWN_FRAME) == 0)
		return;
	ret->symbol = text;
	cut_offset(text, &ret->symbol_offset);
}

/* Parses "/lib/libc.so.6" or, by -F dsoff, "/lib/libc.so.6+0x29ca8". */
static void parse_module(char *text, struct perf_script_frame *ret)
{
	ret->inlined = strcmp(text, "inlined") == 0;
	if (!*text || strcmp(text, UNKNOWN_FRAME) == 0 || ret->inlined)
		return;
	ret->module = text;
	if (*text == '/')
		ret->is_in_file = cut_offset(text, &ret->address);
}

bool perf_script_parse_frame(char *line, struct perf_script_frame *ret)
{
	const char *p = skip_blanks(line);
	char *symbol, *module, *end;

	*ret = (struct perf_script_frame){0};
	if (p == line || !parse_hex(&p, &ret->address) || (*p != ' ' && *p != '\t'))
		return false;
	symbol = line + (skip_blanks(p) - line);
	end = symbol + strlen(symbol);
	while (end > symbol && isspace((unsigned char)end[-1]))
		*--end = '\0';
	/* A symbol may contain brackets. So may a path, but without a blank before them. */
	module = *symbol == '(' ? symbol : strstr(symbol, " (/");
	if (!module)
		module = strstr(symbol, " ([");
	for (char *next = module ? NULL : symbol; next && (next = strstr(next, " (")); next++)
		module = next;
	if (!module || end[-1] != ')')
		return false;
	end[-1] = '\0';
	if (*module == ' ')
		*module++ = '\0';
	*module++ = '\0';
	parse_module(module, ret);
	parse_symbol(symbol, ret);
	return true;
}

bool perf_script_next_field(char **fields, const char **ret_name, const char **ret_value)
{
	char *token;

	while ((token = strsep(fields, " \t"))) {
		char *equals = strchr(token, '=');

		if (!equals || equals == token)
			continue;
		*equals = '\0';
		*ret_name = token;
		*ret_value = equals + 1;
		return true;
	}
	return false;
}

bool perf_script_number(const char *text, uint64_t *ret)
{
	const char *digits = *text == '-' ? text + 1 : text;
	bool is_hex = digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X');
	char *end;

	if (is_hex)
		digits += 2;
	if (!isxdigit((unsigned char)*digits))
		return false;
	errno = 0;
	*ret = strtoull(digits, &end, is_hex ? 16 : 10);
	if (errno || *end)
		return false;
	if (*text == '-')
		*ret = -*ret;
	return true;
}
