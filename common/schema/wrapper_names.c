/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/schema/wrapper_names.h"

#include "common/schema/probe_schema.h"
#include "common/scope.h"

#include <stdbool.h>
#include <string.h>

#define MAX_NAME 64 /* longer than any exact name */

static bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

/* Usual names of programs' own wrappers: xmalloc, zmalloc_usable, ztrymalloc, emalloc, lrealloc. */
static bool has_letter_before(const char *symbol)
{
	static const char *const names[] = {"malloc", "calloc",	  "realloc", "reallocarray",
					    "zalloc", "memalign", "strdup",  "strndup"};

	if (*symbol < 'a' || *symbol > 'z')
		return false;
	symbol++;
	if (begins(symbol, "try"))
		symbol += 3;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		size_t len = strlen(names[i]);

		if (begins(symbol, names[i]) &&
		    (!symbol[len] || strchr("_0123456789", symbol[len])))
			return true;
	}
	return false;
}

/* "main._Cfunc_CString" and "main._Cfunc__CMalloc", which cgo adds to each package. */
static bool is_cgo_helper(const char *symbol)
{
	const char *function = strstr(symbol, "._Cfunc_");

	if (!function)
		return false;
	function += strlen("._Cfunc_");
	return strcmp(function, "_CMalloc") == 0 || strcmp(function, "CString") == 0 ||
	       strcmp(function, "CBytes") == 0;
}

/* "node::TCPWrap::New", which JavaScript's "new" calls. */
static bool is_node_constructor(const char *symbol)
{
	const char *function = begins(symbol, "node::") ? strstr(symbol, "::New") : NULL;

	return function && (!function[5] || function[5] == '(' || function[5] == ' ');
}

/* Functions of Node's own JavaScript, as V8 names them: "JS:allocate node:buffer:429:18". */
static bool is_javascript_of_node(const char *symbol)
{
	return (begins(symbol, "JS:") || begins(symbol, "LazyCompile:")) &&
	       strstr(symbol, " node:");
}

/* Compilers' marks of parts and clones: "zmalloc.part.0". */
static bool is_clone_suffix(const char *text)
{
	static const char *const suffixes[] = {".part.", ".isra.", ".constprop.",
					       ".cold",	 ".llvm.", ".lto_priv."};

	for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++)
		if (begins(text, suffixes[i]))
			return true;
	return false;
}

/* The length of @name without parameters and compilers' suffixes. */
static size_t bare_length(const char *name)
{
	const char *clone = strstr(name, " [clone ");
	size_t most = clone ? (size_t)(clone - name) : strlen(name), len = strcspn(name, "(.");

	while (len < most && name[len] == '.' && !is_clone_suffix(name + len))
		len += 1 + strcspn(name + len + 1, "(.");
	return len < most ? len : most;
}

static bool is_opening(char c)
{
	return c == '<' || c == '(' || c == '{' || c == '[';
}

static bool is_closing(char c)
{
	return c == '>' || c == ')' || c == '}' || c == ']';
}

/* Returns the text after the bracket that closes the one at @text, or its end. */
static const char *skip_brackets(const char *text)
{
	size_t depth = 0;

	for (; *text; text++) {
		if (is_opening(*text))
			depth++;
		/* The ">" of an arrow closes nothing. */
		else if (is_closing(*text) && !(*text == '>' && text[-1] == '-') && !--depth)
			return text + 1;
	}
	return text;
}

/*
 * If @text begins with @word, followed by a space or the end, returns the text after that; else
 * NULL.
 */
static const char *skip_word(const char *text, const char *word)
{
	size_t len = strlen(word);

	if (!begins(text, word) || (text[len] && text[len] != ' '))
		return NULL;
	return text + len + (text[len] == ' ');
}

/* Whether only qualifiers and marks of clones come after the name. */
static bool is_after_name(const char *text)
{
	static const char *const words[] = {"const", "volatile", "&", "&&"};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		const char *next = skip_word(text, words[i]);

		text = next ? next : text;
	}
	return !*text || begins(text, "[clone ");
}

/*
 * Skips the return type in "std::vector<int> app::make<int>(int)": the function's name begins after
 * the last space that is in no brackets.
 */
static const char *skip_return_type(const char *symbol)
{
	const char *name = symbol;

	for (const char *c = symbol; *c;) {
		bool is_word = c == symbol || strchr(" :*&", c[-1]);

		/* What follows belongs to the name: "operator new", "operator<". */
		if (is_word && begins(c, "operator") && strchr(" <>()[]=-+*/%^&|~!,", c[8]))
			break;
		/* Parameters, not "(anonymous namespace)" nor "decltype(f())". */
		if (*c == '(' && !is_word && !(c - symbol >= 8 && begins(c - 8, "decltype")))
			break;
		if (*c == ' ') {
			if (is_after_name(c + 1))
				break;
			name = c + 1;
		}
		c = is_opening(*c) ? skip_brackets(c) : c + 1;
	}
	return *name ? name : symbol;
}

/* Whether @path begins with a crate that comes with Rust. */
static bool is_rust_library(const char *path)
{
	return begins(path, "alloc::") || begins(path, "core::") || begins(path, "std::") ||
	       begins(path, "hashbrown::");
}

/*
 * Rust's "<TYPE>::function" and "<TYPE as TRAIT>::function". An application may implement its own
 * trait for a library's type, and a library's trait for its own type. So it is a wrapper only if
 * both belong to the library, or if the type is no path at all, such as "T", "u8" or "[T]".
 */
static enum wrapper_kind find_in_angles(const char *symbol)
{
	const char *type, *c, *trait = NULL;
	bool has_path = false;

	while (*symbol == '<')
		symbol++;
	type = symbol + strspn(symbol, "&*");
	if (begins(type, "mut "))
		type += strlen("mut ");
	for (c = type; *c && *c != '>' && !trait;) {
		has_path |= begins(c, "::");
		trait = begins(c, " as ") ? c + strlen(" as ") : NULL;
		c = is_opening(*c) ? skip_brackets(c) : c + 1;
	}
	/* The allocators of all crates implement this trait. */
	if (trait && begins(trait, "core::alloc::"))
		return WRAPPER_OF_RUST;
	/* Not "<module>", which is Python's. */
	if (trait ? !is_rust_library(trait) && *trait != '<' : !begins(c, ">::"))
		return WRAPPER_NONE;
	return is_rust_library(type) || !has_path ? WRAPPER_OF_RUST : WRAPPER_NONE;
}

static bool is_in_module(const struct wrapper_row *row, const char *module)
{
	const char *slash = module ? strrchr(module, '/') : NULL;

	return !row->module || (module && begins(slash ? slash + 1 : module, row->module));
}

static int compare_rows(const void *key, const void *row)
{
	return strcmp(key, ((const struct wrapper_row *)row)->name);
}

/* Looks for the whole @name, without suffixes. */
static bool has_exact_name(const char *name, const char *module)
{
	char bare[MAX_NAME];
	size_t nr, len = bare_length(name);
	const struct wrapper_row *rows = wrapper_table_exact(&nr), *row;

	if (len >= sizeof(bare))
		return false;
	memcpy(bare, name, len);
	bare[len] = '\0';
	row = bsearch(bare, rows, nr, sizeof(*rows), compare_rows);
	if (row)
		return is_in_module(row, module);
	return probe_schema_find(bare) || has_letter_before(bare);
}

/* Compares a name that begins with the row as equal. No row is the beginning of another. */
static int compare_beginnings(const void *key, const void *row)
{
	const char *name = ((const struct wrapper_row *)row)->name;

	return strncmp(key, name, strlen(name));
}

enum wrapper_kind wrapper_names_find(const char *symbol, const char *module)
{
	const struct wrapper_row *rows, *row;
	const char *name = symbol;
	size_t nr;

	if (*symbol == '<')
		return find_in_angles(symbol);
	if (is_javascript_of_node(symbol))
		return WRAPPER_ANYWHERE;
	if (strchr(symbol, ' '))
		name = skip_return_type(symbol);
	rows = wrapper_table_beginnings(&nr);
	row = bsearch(name, rows, nr, sizeof(*rows), compare_beginnings);
	if (row)
		return is_in_module(row, module) ? row->kind : WRAPPER_NONE;
	return has_exact_name(name, module) || is_cgo_helper(name) || is_node_constructor(name)
		       ? WRAPPER_ANYWHERE
		       : WRAPPER_NONE;
}
