/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/allocators/allocator.h"

#include "probes/allocators/allocator_symbols.h"
#include "probes/x86/code_targets.h"

#include <errno.h>
#include <stdlib.h>

/* Which functions of a file are used. */
struct selection {
	const struct allocator_symbols *symbols;
	bool malloc, operators;
	bool by_family; /* different families must be told apart */
};

/*
 * True if operators do not call malloc. The libcs have none: in a static program the operators
 * call malloc. In other files they do so if the file imports malloc.
 */
static bool has_own_operators(const struct allocator_symbols *symbols, bool has_malloc)
{
	if (!allocator_symbols_have_operators(symbols))
		return false;
	if (!has_malloc)
		return !symbols->imports_malloc;
	return symbols->kinds[ALLOCATOR_JEMALLOC] || symbols->kinds[ALLOCATOR_TCMALLOC] ||
	       symbols->kinds[ALLOCATOR_MIMALLOC] ||
	       !(symbols->kinds[ALLOCATOR_GLIBC] || symbols->kinds[ALLOCATOR_MUSL]);
}

/*
 * Sorts by address. At one address the plainest symbol comes first: C names, without a prefix, the
 * shortest.
 */
static int compare_symbols(const void *a, const void *b)
{
	const struct allocator_symbol *x = a, *y = b;
	bool x_operator = probe_symbol_is_operator(&x->meaning);
	bool y_operator = probe_symbol_is_operator(&y->meaning);
	size_t x_len = strlen(x->name), y_len = strlen(y->name);

	if (x->code.offset != y->code.offset)
		return x->code.offset < y->code.offset ? -1 : 1;
	/* Candidates for an indirect function have no size. */
	if (!x->code.size_bytes != !y->code.size_bytes)
		return x->code.size_bytes ? -1 : 1;
	if (x_operator != y_operator)
		return x_operator ? 1 : -1;
	if (x->meaning.prefix_len != y->meaning.prefix_len)
		return x->meaning.prefix_len < y->meaning.prefix_len ? -1 : 1;
	if (x->meaning.schema != y->meaning.schema)
		return x->meaning.schema < y->meaning.schema ? -1 : 1;
	if (x_len != y_len)
		return x_len < y_len ? -1 : 1;
	return strcmp(x->name, y->name);
}

/* A static function's name means nothing if a global function has that name. */
static bool is_shadowed(const struct allocator_symbols *symbols,
			const struct allocator_symbol *symbol)
{
	for (size_t i = 0; i < symbols->nr && symbol->is_local; i++)
		if (!symbols->list[i].is_local && strcmp(symbols->list[i].name, symbol->name) == 0)
			return true;
	return false;
}

/* What the symbols at one address mean. */
struct code_meaning {
	const struct allocator_symbol *plainest;
	bool families[FAMILY_NEW_ARRAY + 1];
	int nr_families;
};

static void add_meaning(struct code_meaning *meaning, const struct allocator_symbol *symbol)
{
	enum heap_family family = symbol->meaning.schema->family;

	if (!meaning->plainest)
		meaning->plainest = symbol;
	meaning->nr_families += !meaning->families[family];
	meaning->families[family] = true;
}

/* The schema's row for code that several families share, or whose family does not matter. */
static const struct probe_schema *shared_row(const struct code_meaning *meaning)
{
	bool releases = meaning->plainest->meaning.schema->effect == HEAP_RELEASE;

	if (meaning->families[FAMILY_MALLOC])
		return probe_schema_find(releases ? "free_or_delete" : "malloc_or_new");
	return probe_schema_find(releases ? "delete" : "new");
}

static void add_function(struct allocator *allocator, const struct code_meaning *meaning,
			 const struct selection *selection)
{
	const struct allocator_symbol *symbol = meaning->plainest;
	struct allocator_function *function = &allocator->functions[allocator->nr];
	bool is_operator = probe_symbol_is_operator(&symbol->meaning);
	struct probe_symbol by_name;

	if (is_operator ? !selection->operators : !selection->malloc)
		return;
	*function = (struct allocator_function){
		.schema = symbol->meaning.schema,
		.first_arg = symbol->meaning.first_arg,
		.code = symbol->code,
	};
	memcpy(function->symbol, symbol->name, sizeof(function->symbol));
	if (selection->by_family ? meaning->nr_families > 1 : is_operator)
		function->schema = shared_row(meaning);
	allocator->shares_code |= meaning->nr_families > 1;
	function->is_named_by_symbol = probe_symbol_find(symbol->name, NULL, &by_name) &&
				       by_name.schema == function->schema && !is_operator;
	allocator->nr++;
}

static int add_functions(struct allocator *allocator, const struct selection *selection)
{
	const struct allocator_symbols *symbols = selection->symbols;

	allocator->functions = calloc(symbols->nr + 1, sizeof(*allocator->functions));
	if (!allocator->functions)
		return -ENOMEM;
	if (symbols->nr > 1)
		qsort(symbols->list, symbols->nr, sizeof(*symbols->list), compare_symbols);
	for (size_t i = 0; i < symbols->nr;) {
		uint64_t offset = symbols->list[i].code.offset;
		struct code_meaning meaning = {0};

		for (; i < symbols->nr && symbols->list[i].code.offset == offset; i++)
			if (!is_shadowed(symbols, &symbols->list[i]))
				add_meaning(&meaning, &symbols->list[i]);
		if (meaning.plainest)
			add_function(allocator, &meaning, selection);
	}
	return 0;
}

struct wrapper_search {
	const struct allocator *allocator;
	const struct allocator_function *function;
};

static bool has_same_effect(const struct allocator_function *wrapper,
			    const struct probe_schema *schema)
{
	return wrapper->schema->effect == schema->effect &&
	       (wrapper->schema->family == schema->family || wrapper->schema->family == FAMILY_ANY);
}

/* True if a call of @target is recorded, and with the same effect as the function's own. */
static bool is_recorded(void *context, const struct code_target *target)
{
	const struct wrapper_search *search = context;
	const struct allocator *allocator = search->allocator;
	struct probe_symbol meaning;

	/* malloc has probes, whichever file defines it; operators may have none. */
	if (target->symbol)
		return probe_symbol_find(target->symbol, NULL, &meaning) &&
		       !probe_symbol_is_operator(&meaning) &&
		       has_same_effect(search->function, meaning.schema);
	for (size_t i = 0; i < allocator->nr; i++)
		if (allocator->functions[i].code.offset == target->offset &&
		    &allocator->functions[i] != search->function)
			return has_same_effect(search->function, allocator->functions[i].schema);
	return false;
}

/*
 * Finds functions that only jump to others, also through the PLT, and reallocarray(), which in most
 * allocators ends in realloc(). Their calls are recorded there.
 */
static int find_wrappers(struct allocator *allocator, const struct elf_image *image)
{
	for (size_t i = 0; i < allocator->nr; i++) {
		struct allocator_function *function = &allocator->functions[i];
		struct wrapper_search search = {allocator, function};
		bool only_first = strcmp(function->schema->function, "reallocarray") != 0;
		int found = code_targets_visit(image, &function->code, only_first, is_recorded,
					       &search);

		if (found < 0)
			return found;
		function->is_wrapper = found;
	}
	return 0;
}

static void append_name(struct allocator *allocator, const char *name, const char *detail)
{
	size_t len = strlen(allocator->name);

	snprintf(allocator->name + len, sizeof(allocator->name) - len, "%s%s%s",
		 len > 0 ? ", " : "", name, detail);
}

/* Names the allocator. One that replaces libc's malloc is named alone. */
static void name_allocator(struct allocator *allocator, const struct allocator_symbols *symbols,
			   bool has_malloc)
{
	static const char *const names[ALLOCATOR_NR_KINDS] = {
		[ALLOCATOR_JEMALLOC] = "jemalloc", [ALLOCATOR_TCMALLOC] = "tcmalloc",
		[ALLOCATOR_MIMALLOC] = "mimalloc", [ALLOCATOR_GLIBC] = "glibc",
		[ALLOCATOR_MUSL] = "musl",
	};
	char detail[ALLOCATOR_MAX_PREFIX + 16] = "";

	if (symbols->prefix[0])
		snprintf(detail, sizeof(detail), " (%s...)", symbols->prefix);
	for (int i = 0; i < ALLOCATOR_NR_KINDS && has_malloc; i++)
		if (symbols->kinds[i])
			append_name(allocator, names[i], i == ALLOCATOR_JEMALLOC ? detail : "");
	if (!has_malloc)
		append_name(allocator, "C++ operators",
			    symbols->imports_malloc ? " that call malloc" : "");
	else if (!allocator->name[0])
		append_name(allocator, "unknown allocator", "");
}

int allocator_init(struct allocator *ret, const struct elf_image *image, bool with_operators)
{
	struct allocator_symbols symbols;
	struct selection selection = {.symbols = &symbols, .by_family = with_operators};
	int err;

	*ret = (struct allocator){0};
	if (!image->is_native)
		return 0;
	err = allocator_symbols_init(&symbols, image);
	if (err)
		return err;
	selection.malloc = allocator_symbols_have_malloc(&symbols);
	selection.operators = with_operators || has_own_operators(&symbols, selection.malloc);
	ret->is_glibc = symbols.kinds[ALLOCATOR_GLIBC] && selection.malloc;
	ret->is_libc = selection.malloc &&
		       (symbols.kinds[ALLOCATOR_GLIBC] || symbols.kinds[ALLOCATOR_MUSL]);
	name_allocator(ret, &symbols, selection.malloc);
	if (selection.malloc || selection.operators)
		err = add_functions(ret, &selection);
	if (!err)
		err = find_wrappers(ret, image);
	allocator_symbols_deinit(&symbols);
	if (err)
		allocator_deinit(ret);
	return err;
}

void allocator_deinit(struct allocator *allocator)
{
	free(allocator->functions);
	*allocator = (struct allocator){0};
}

const struct allocator_function *allocator_find_code(const struct allocator *allocator,
						     uint64_t offset)
{
	const struct allocator_function *found = NULL;

	for (size_t i = 0; i < allocator->nr; i++) {
		const struct allocator_function *function = &allocator->functions[i];

		if (function->code.offset <= offset &&
		    (offset == function->code.offset ||
		     offset - function->code.offset < function->code.size_bytes))
			found = function;
	}
	return found;
}
