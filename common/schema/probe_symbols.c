/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/schema/probe_symbols.h"

#include "common/scope.h"

#include <stdlib.h>
#include <string.h>

struct symbol_row {
	const char *name;
	const char *function; /* of the schema */
	int first_arg;
};

/* Symbols that get the prefix of an allocator that was built with one. In strcmp()'s order. */
static const struct symbol_row plain_symbols[] = {
	{"aligned_alloc", "aligned_alloc", 0},
	{"calloc", "calloc", 0},
	{"cfree", "free", 0},
	{"dallocx", "dallocx", 0},
	{"free", "free", 0},
	{"free_aligned_sized", "free", 0}, /* C23 */
	{"free_sized", "free", 0},	   /* C23 */
	{"malloc", "malloc", 0},
	{"mallocx", "mallocx", 0},
	{"memalign", "memalign", 0},
	{"posix_memalign", "posix_memalign", 0},
	{"pvalloc", "pvalloc", 0},
	{"rallocx", "rallocx", 0},
	{"realloc", "realloc", 0},
	{"reallocarray", "reallocarray", 0},
	{"sdallocx", "sdallocx", 0},
	{"valloc", "valloc", 0},
};

/*
 * C++'s operators (Itanium C++ ABI, 5.1.5.3: nw, na, dl, da): size_t is m, std::align_val_t
 * St11align_val_t, const std::nothrow_t & RKSt9nothrow_t. Also the C functions of tcmalloc
 * (gperftools 2.10, src/gperftools/tcmalloc.h.in) and mimalloc (2.0.9, include/mimalloc.h). In
 * strcmp()'s order.
 */
static const struct symbol_row own_symbols[] = {
	{"_ZdaPv", "operator_delete_array", 0},
	{"_ZdaPvRKSt9nothrow_t", "operator_delete_array", 0},
	{"_ZdaPvSt11align_val_t", "operator_delete_array", 0},
	{"_ZdaPvSt11align_val_tRKSt9nothrow_t", "operator_delete_array", 0},
	{"_ZdaPvm", "operator_delete_array", 0},
	{"_ZdaPvmSt11align_val_t", "operator_delete_array", 0},
	{"_ZdlPv", "operator_delete", 0},
	{"_ZdlPvRKSt9nothrow_t", "operator_delete", 0},
	{"_ZdlPvSt11align_val_t", "operator_delete", 0},
	{"_ZdlPvSt11align_val_tRKSt9nothrow_t", "operator_delete", 0},
	{"_ZdlPvm", "operator_delete", 0},
	{"_ZdlPvmSt11align_val_t", "operator_delete", 0},
	{"_Znam", "operator_new_array", 0},
	{"_ZnamRKSt9nothrow_t", "operator_new_array", 0},
	{"_ZnamSt11align_val_t", "operator_new_array", 0},
	{"_ZnamSt11align_val_tRKSt9nothrow_t", "operator_new_array", 0},
	{"_Znwm", "operator_new", 0},
	{"_ZnwmRKSt9nothrow_t", "operator_new", 0},
	{"_ZnwmSt11align_val_t", "operator_new", 0},
	{"_ZnwmSt11align_val_tRKSt9nothrow_t", "operator_new", 0},
	{"mi_calloc_aligned", "calloc", 0},
	{"mi_calloc_aligned_at", "calloc", 0},
	{"mi_free_aligned", "free", 0},
	{"mi_free_size", "free", 0},
	{"mi_free_size_aligned", "free", 0},
	{"mi_heap_alloc_new", "operator_new", 1},
	{"mi_heap_alloc_new_n", "calloc", 1},
	{"mi_heap_calloc", "calloc", 1},
	{"mi_heap_calloc_aligned", "calloc", 1},
	{"mi_heap_calloc_aligned_at", "calloc", 1},
	{"mi_heap_malloc", "malloc", 1},
	{"mi_heap_malloc_aligned", "malloc", 1},
	{"mi_heap_malloc_aligned_at", "malloc", 1},
	{"mi_heap_malloc_small", "malloc", 1},
	{"mi_heap_mallocn", "calloc", 1},
	{"mi_heap_realloc", "realloc", 1},
	{"mi_heap_realloc_aligned", "realloc", 1},
	{"mi_heap_realloc_aligned_at", "realloc", 1},
	{"mi_heap_reallocf", "realloc", 1},
	{"mi_heap_reallocn", "reallocarray", 1},
	{"mi_heap_recalloc", "reallocarray", 1},
	{"mi_heap_recalloc_aligned", "reallocarray", 1},
	{"mi_heap_recalloc_aligned_at", "reallocarray", 1},
	{"mi_heap_rezalloc", "realloc", 1},
	{"mi_heap_rezalloc_aligned", "realloc", 1},
	{"mi_heap_rezalloc_aligned_at", "realloc", 1},
	{"mi_heap_zalloc", "malloc", 1},
	{"mi_heap_zalloc_aligned", "malloc", 1},
	{"mi_heap_zalloc_aligned_at", "malloc", 1},
	{"mi_malloc_aligned", "malloc", 0},
	{"mi_malloc_aligned_at", "malloc", 0},
	{"mi_malloc_small", "malloc", 0},
	{"mi_mallocn", "calloc", 0},
	{"mi_new", "operator_new", 0},
	{"mi_new_aligned", "operator_new", 0},
	{"mi_new_aligned_nothrow", "operator_new", 0},
	{"mi_new_n", "calloc", 0},
	{"mi_new_nothrow", "operator_new", 0},
	{"mi_new_realloc", "realloc", 0},
	{"mi_new_reallocn", "reallocarray", 0},
	{"mi_realloc_aligned", "realloc", 0},
	{"mi_realloc_aligned_at", "realloc", 0},
	{"mi_reallocf", "realloc", 0},
	{"mi_reallocn", "reallocarray", 0},
	{"mi_recalloc", "reallocarray", 0},
	{"mi_recalloc_aligned", "reallocarray", 0},
	{"mi_recalloc_aligned_at", "reallocarray", 0},
	{"mi_rezalloc", "realloc", 0},
	{"mi_rezalloc_aligned", "realloc", 0},
	{"mi_rezalloc_aligned_at", "realloc", 0},
	{"mi_zalloc", "malloc", 0},
	{"mi_zalloc_aligned", "malloc", 0},
	{"mi_zalloc_aligned_at", "malloc", 0},
	{"mi_zalloc_small", "malloc", 0},
	{"tc_delete", "operator_delete", 0},
	{"tc_delete_aligned", "operator_delete", 0},
	{"tc_delete_aligned_nothrow", "operator_delete", 0},
	{"tc_delete_nothrow", "operator_delete", 0},
	{"tc_delete_sized", "operator_delete", 0},
	{"tc_delete_sized_aligned", "operator_delete", 0},
	{"tc_deletearray", "operator_delete_array", 0},
	{"tc_deletearray_aligned", "operator_delete_array", 0},
	{"tc_deletearray_aligned_nothrow", "operator_delete_array", 0},
	{"tc_deletearray_nothrow", "operator_delete_array", 0},
	{"tc_deletearray_sized", "operator_delete_array", 0},
	{"tc_deletearray_sized_aligned", "operator_delete_array", 0},
	{"tc_malloc_skip_new_handler", "malloc", 0},
	{"tc_new", "operator_new", 0},
	{"tc_new_aligned", "operator_new", 0},
	{"tc_new_aligned_nothrow", "operator_new", 0},
	{"tc_new_nothrow", "operator_new", 0},
	{"tc_newarray", "operator_new_array", 0},
	{"tc_newarray_aligned", "operator_new_array", 0},
	{"tc_newarray_aligned_nothrow", "operator_new_array", 0},
	{"tc_newarray_nothrow", "operator_new_array", 0},
};

static const char *const known_prefixes[] = {"je_", "_rjem_", "tc_", "mi_"};

static int compare_rows(const void *key, const void *row)
{
	return strcmp(key, ((const struct symbol_row *)row)->name);
}

static bool find_row(const struct symbol_row *rows, size_t nr, const char *name, size_t prefix_len,
		     struct probe_symbol *ret)
{
	const struct symbol_row *row = bsearch(name, rows, nr, sizeof(*rows), compare_rows);

	if (!row)
		return false;
	*ret = (struct probe_symbol){
		.schema = probe_schema_find(row->function),
		.first_arg = row->first_arg,
		.prefix_len = prefix_len,
	};
	return true;
}

static bool find_prefixed(const char *symbol, const char *prefix, struct probe_symbol *ret)
{
	size_t len = strlen(prefix);

	return strncmp(symbol, prefix, len) == 0 &&
	       find_row(plain_symbols, ARRAY_SIZE(plain_symbols), symbol + len, len, ret);
}

bool probe_symbol_find(const char *symbol, const char *prefix, struct probe_symbol *ret)
{
	if (find_row(plain_symbols, ARRAY_SIZE(plain_symbols), symbol, 0, ret) ||
	    find_row(own_symbols, ARRAY_SIZE(own_symbols), symbol, 0, ret) ||
	    (prefix && find_prefixed(symbol, prefix, ret)))
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(known_prefixes); i++)
		if (find_prefixed(symbol, known_prefixes[i], ret))
			return true;
	return false;
}
