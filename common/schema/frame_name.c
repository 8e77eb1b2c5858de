/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/schema/frame_name.h"

#include "common/scope.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#define RUST_HASH_DIGITS 16
#define CUT		 "..."

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$' || ((unsigned char)c & 0x80);
}

/* Whether the first @len bytes of @text end in "operator" or a part of an operator's name. */
static bool follows_operator(const char *text, size_t len)
{
	static const char word[] = "operator";
	size_t word_len = sizeof(word) - 1;

	/* The characters in operator<< and operator->. */
	while (len && strchr("<>=-*", text[len - 1]))
		len--;
	return len >= word_len && strncmp(text + len - word_len, word, word_len) == 0 &&
	       (len == word_len || !is_word(text[len - word_len - 1]));
}

/* Returns the text after the bracket that closes the one at @text, or NULL. */
static const char *skip_brackets(const char *text)
{
	size_t depth = 0;

	for (const char *c = text; *c; c++) {
		if (strchr("<({[", *c))
			depth++;
		/* The ">" of an arrow in a type closes nothing. */
		else if (strchr(">)}]", *c) && !(*c == '>' && c > text && c[-1] == '-') && !--depth)
			return c + 1;
	}
	return NULL;
}

/*
 * If the part of @symbol that the bracket at @at opens is to be left out, returns the text after
 * it, and in *@ret_instead what replaces the part. Else returns NULL.
 */
static const char *skip_part(const char *symbol, const char *at, const char **ret_instead)
{
	static const char anonymous[] = "(anonymous namespace)::";
	size_t before = (size_t)(at - symbol);

	*ret_instead = "";
	if (strncmp(at, anonymous, sizeof(anonymous) - 1) == 0)
		return at + sizeof(anonymous) - 1;
	/* At the beginning it is Rust's "<T as Trait>::f", not a C++ template. */
	if (!before || follows_operator(symbol, before))
		return NULL;
	/* Or after an operator that no bracket could belong to. */
	if (*at == '<' && (is_word(at[-1]) || strchr("+/%^&|~!)]", at[-1]))) {
		*ret_instead = "<>";
		return skip_brackets(at);
	}
	if (*at == '(' && (is_word(at[-1]) || strchr(">)]", at[-1])))
		return skip_brackets(at);
	if (strncmp(at, "[abi:", 5) == 0)
		return skip_brackets(at);
	return NULL;
}

/* The length of @name without "::h0123456789abcdef", which rustc appends. */
static size_t length_without_hash(const char *name, size_t len)
{
	const char *hash;

	if (len < RUST_HASH_DIGITS + 3)
		return len;
	hash = name + len - RUST_HASH_DIGITS - 3;
	if (strncmp(hash, "::h", 3) != 0 || strspn(hash + 3, "0123456789abcdef") < RUST_HASH_DIGITS)
		return len;
	return len - RUST_HASH_DIGITS - 3;
}

/* The end of the name itself, before qualifiers, clone suffixes and hashes. */
static const char *end_of_name(const char *symbol)
{
	static const char qualifier[] = " const";
	const char *clone = strstr(symbol, " [clone ");
	size_t len = clone ? (size_t)(clone - symbol) : strlen(symbol);

	if (len > sizeof(qualifier) &&
	    strncmp(symbol + len - sizeof(qualifier) + 1, qualifier, sizeof(qualifier) - 1) == 0)
		len -= sizeof(qualifier) - 1;
	return symbol + length_without_hash(symbol, len);
}

/* Removes what is in brackets. Returns NULL if memory is exhausted. */
static char *without_details(const char *symbol)
{
	_cleanup_free_ char *name = NULL;
	const char *end = end_of_name(symbol);
	size_t size;
	FILE *out = open_memstream(&name, &size);

	if (!out)
		return NULL;
	for (const char *from = symbol; from < end;) {
		const char *instead = "", *after = NULL;

		if (strchr("<([", *from))
			after = skip_part(symbol, from, &instead);
		if (after)
			fputs(instead, out);
		else
			fputc(*from, out);
		from = after ? after : from + 1;
	}
	return fclose(out) == 0 ? steal_ptr(name) : NULL;
}

static bool begins_char(char c)
{
	return ((unsigned char)c & 0xc0) != 0x80;
}

static size_t nr_chars(const char *text)
{
	size_t nr = 0;

	for (; *text; text++)
		nr += begins_char(*text);
	return nr;
}

/* Cuts @name to @max_chars characters: first outer scopes, then the end. */
static char *cut(const char *name, size_t max_chars)
{
	size_t room = max_chars - strlen(CUT), bytes = 0, nr = 0;
	const char *scope = name, *next;
	char *text;

	while (nr_chars(scope) > room && (next = strstr(scope, "::")))
		scope = next + 2;
	if (nr_chars(scope) <= room)
		return asprintf(&text, CUT "%s", scope) < 0 ? NULL : text;
	while (scope[bytes] && (nr += begins_char(scope[bytes])) <= room)
		bytes++;
	return asprintf(&text, "%.*s" CUT, (int)bytes, scope) < 0 ? NULL : text;
}

/*
 * A natively compiled Lisp function of Emacs, "F666f6f_foo_0", has its name in hexadecimal, then in
 * letters, and a number (comp-c-func-name in lisp/emacs-lisp/comp.el). Returns the name in letters,
 * or NULL if @symbol is no such function.
 */
static char *lisp_name(const char *symbol)
{
	size_t nr_digits = *symbol == 'F' ? strspn(symbol + 1, "0123456789abcdef") : 0;
	/* Each character has two digits. */
	size_t len = nr_digits / 2;
	const char *name = symbol + 1 + nr_digits, *number;

	if (!len || nr_digits % 2 || *name++ != '_' || strnlen(name, len) < len)
		return NULL;
	number = name + len;
	if (*number++ != '_' || !*number || number[strspn(number, "0123456789")])
		return NULL;
	return strndup(name, len);
}

char *frame_name_short(const char *symbol, size_t max_chars)
{
	_cleanup_free_ char *name = lisp_name(symbol);

	/* A name without scopes and parentheses is C or unknown: keep it. */
	if (!name)
		name = strstr(symbol, "::") || strchr(symbol, '(') ? without_details(symbol)
								   : strdup(symbol);
	if (!name || nr_chars(name) <= max_chars || max_chars <= strlen(CUT))
		return steal_ptr(name);
	return cut(name, max_chars);
}
