/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/allocators/allocator_symbols.h"

#include "probes/x86/code_targets.h"

#include "common/scope.h"

#include <errno.h>
#include <stdlib.h>

#define MAX_SYMBOLS	512 /* of the schema; mimalloc has 130 */
#define MAX_CANDIDATES	8   /* of an indirect function */
#define JEMALLOC_SYMBOL "mallctlnametomib"

/* Symbols that only one allocator has (glibc 2.36, musl 1.2.3, gperftools 2.10, mimalloc 2.0.9). */
static const struct {
	const char *symbol;
	enum allocator_kind kind;
} evidence[] = {
	{"gnu_get_libc_version", ALLOCATOR_GLIBC},
	{"_int_malloc", ALLOCATOR_GLIBC},
	{"__dls3", ALLOCATOR_MUSL},
	{"__libc_start_init", ALLOCATOR_MUSL},
	{"tc_malloc", ALLOCATOR_TCMALLOC},
	{"TCMallocGetenvSafe", ALLOCATOR_TCMALLOC},
	{"TCMallocInternalMalloc", ALLOCATOR_TCMALLOC},
	{"mi_malloc", ALLOCATOR_MIMALLOC},
	{"mi_version", ALLOCATOR_MIMALLOC},
};

/* A search through all symbols. */
struct search {
	struct allocator_symbols *to;
	const char *prefix; /* NULL: not known */
	int err;
};

/* jemalloc can be built with any prefix, which its mallctl functions have, too. */
static void note_jemalloc(struct allocator_symbols *to, const char *name)
{
	size_t len = strlen(name), tail = strlen(JEMALLOC_SYMBOL);

	if (len < tail || strcmp(name + len - tail, JEMALLOC_SYMBOL) != 0)
		return;
	to->kinds[ALLOCATOR_JEMALLOC] = true;
	if (len - tail < sizeof(to->prefix)) {
		memcpy(to->prefix, name, len - tail);
		to->prefix[len - tail] = '\0';
	}
}

static void note_evidence(struct allocator_symbols *to, const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(evidence); i++)
		if (strcmp(evidence[i].symbol, name) == 0)
			to->kinds[evidence[i].kind] = true;
	note_jemalloc(to, name);
}

/* True if the symbol may have nothing to do with an allocator: a program's own static function. */
static bool is_ambiguous(const struct allocator_symbols *to, const struct elf_symbol *symbol,
			 const struct probe_symbol *meaning)
{
	return symbol->is_local && !to->is_static && meaning->prefix_len == 0 &&
	       !probe_symbol_is_operator(meaning);
}

static int append(struct allocator_symbols *to, const struct allocator_symbol *symbol)
{
	struct allocator_symbol *grown;

	if (to->nr == MAX_SYMBOLS)
		return 0;
	grown = reallocarray(to->list, to->nr + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	to->list = grown;
	to->list[to->nr++] = *symbol;
	return 0;
}

/*
 * Appends the candidates for an indirect function. Its resolver chooses the code when the program
 * is loaded, among those whose addresses it loads.
 */
static int append_candidates(struct allocator_symbols *to, const struct allocator_symbol *symbol)
{
	uint64_t offsets[MAX_CANDIDATES];
	int err = 0, nr = code_targets_loaded(to->image, &symbol->code, offsets, MAX_CANDIDATES);

	for (int i = 0; i < nr && !err; i++) {
		struct allocator_symbol candidate = *symbol;

		candidate.code = (struct elf_function){.is_found = true, .offset = offsets[i]};
		err = append(to, &candidate);
	}
	return err ? err : nr < 0 ? nr : 0;
}

static bool add_symbol(void *context, const struct elf_symbol *symbol)
{
	struct search *search = context;
	struct allocator_symbols *to = search->to;
	struct allocator_symbol found = {.is_local = symbol->is_local};

	if (symbol->is_import) {
		to->imports_malloc |= symbol->in_dynsym && strcmp(symbol->name, "malloc") == 0;
		return true;
	}
	if (symbol->type != STT_FUNC && symbol->type != STT_GNU_IFUNC)
		return true;
	note_evidence(to, symbol->name);
	if (!probe_symbol_find(symbol->name, search->prefix, &found.meaning) ||
	    is_ambiguous(to, symbol, &found.meaning) ||
	    strlen(symbol->name) >= sizeof(found.name) ||
	    !elf_image_locate(to->image, symbol, &found.code))
		return true;
	memcpy(found.name, symbol->name, strlen(symbol->name) + 1);
	search->err = symbol->type == STT_FUNC ? append(to, &found) : append_candidates(to, &found);
	return !search->err;
}

int allocator_symbols_init(struct allocator_symbols *ret, const struct elf_image *image)
{
	struct search search = {.to = ret};

	*ret = (struct allocator_symbols){
		.image = image,
		.is_static = elf_image_is_static(image),
	};
	elf_image_visit_symbols(image, add_symbol, &search);
	if (!search.err && ret->prefix[0]) {
		/* Search again, with the prefix. */
		ret->nr = 0;
		search.prefix = ret->prefix;
		elf_image_visit_symbols(image, add_symbol, &search);
	}
	if (search.err)
		allocator_symbols_deinit(ret);
	return search.err;
}

void allocator_symbols_deinit(struct allocator_symbols *symbols)
{
	free(symbols->list);
	symbols->list = NULL;
	symbols->nr = 0;
}

/* True if there is a symbol @name with the prefix of @like. */
static bool has_beside(const struct allocator_symbols *symbols, const struct allocator_symbol *like,
		       const char *name)
{
	size_t len = like->meaning.prefix_len;

	for (size_t i = 0; i < symbols->nr; i++)
		if (symbols->list[i].meaning.prefix_len == len &&
		    strncmp(symbols->list[i].name, like->name, len) == 0 &&
		    strcmp(symbols->list[i].name + len, name) == 0)
			return true;
	return false;
}

static bool has_pair(const struct allocator_symbols *symbols)
{
	for (size_t i = 0; i < symbols->nr; i++) {
		const struct allocator_symbol *symbol = &symbols->list[i];

		if (strcmp(symbol->name + symbol->meaning.prefix_len, "malloc") == 0 &&
		    has_beside(symbols, symbol, "free"))
			return true;
	}
	return false;
}

/* True if a C function, or an operator, allocates, or releases. */
static bool has_effect(const struct allocator_symbols *symbols, bool is_operator, bool releases)
{
	for (size_t i = 0; i < symbols->nr; i++) {
		const struct probe_symbol *meaning = &symbols->list[i].meaning;

		if (probe_symbol_is_operator(meaning) == is_operator &&
		    (meaning->schema->effect == HEAP_RELEASE) == releases)
			return true;
	}
	return false;
}

bool allocator_symbols_have_malloc(const struct allocator_symbols *symbols)
{
	bool is_loader;

	if (symbols->nr == 0)
		return false;
	is_loader = elf_image_is_loader(symbols->image);
	if (symbols->is_static && !is_loader)
		return has_effect(symbols, false, false);
	if (!has_pair(symbols) || !is_loader)
		return has_pair(symbols);
	for (size_t i = 0; i < symbols->nr; i++)
		if (strcmp(symbols->list[i].name, "posix_memalign") == 0)
			return true;
	return false;
}

bool allocator_symbols_have_operators(const struct allocator_symbols *symbols)
{
	return has_effect(symbols, true, false) && has_effect(symbols, true, true);
}
