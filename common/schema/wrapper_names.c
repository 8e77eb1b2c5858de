/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/schema/wrapper_names.h"

#include "common/schema/probe_schema.h"
#include "common/scope.h"

#include <string.h>

/* Usual names of programs' own wrappers: xmalloc, zmalloc_usable, ztrymalloc, emalloc, lrealloc. */
static bool has_letter_before(const char *symbol)
{
	static const char *const names[] = {"malloc",	"calloc", "realloc", "zalloc",
					    "memalign", "strdup", "strndup"};

	if (*symbol < 'a' || *symbol > 'z')
		return false;
	symbol++;
	if (strncmp(symbol, "try", 3) == 0)
		symbol += 3;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		size_t len = strlen(names[i]);

		if (strncmp(symbol, names[i], len) == 0 &&
		    (!symbol[len] || strchr("_0123456789", symbol[len])))
			return true;
	}
	return false;
}

bool wrapper_names_have(const char *symbol)
{
	static const char *const exact[] = {"operator new", "operator new[]", "mmap",	  "mremap",
					    "brk",	    "sbrk",	      "mmap64",	  "strdup",
					    "strndup",	    "asprintf",	      "vasprintf"};
	static const char *const beginnings[] = {
		"__GI_",	   "__mmap",	      "__mremap",	  "__brk",
		"__sbrk",	   "__libc_malloc",   "__libc_calloc",	  "__libc_realloc",
		"__libc_memalign", "g_malloc",	      "g_try_malloc",	  "g_realloc",
		"g_try_realloc",   "g_slice_alloc",   "g_strdup",	  "PyMem_",
		"PyObject_Malloc", "PyObject_Calloc", "PyObject_Realloc", "_PyObject_",
		"CRYPTO_malloc",   "CRYPTO_realloc",  "CRYPTO_strdup",	  "CRYPTO_zalloc",
		"XtCalloc",	   "XtMalloc",	      "XtRealloc",	  "ngx_alloc",
		"ngx_calloc",	   "ngx_memalign",    "sqlite3DbMalloc",  "sqlite3DbRealloc",
		"sqlite3DbStrDup", "sqlite3Malloc",   "sqlite3MemMalloc", "sqlite3MemRealloc",
		"sqlite3Realloc",  "__rust_",	      "__rdl_",		  "__rg_",
		"alloc::",	   "std::",	      "__gnu_cxx::",	  "void* std::",
	};

	if (probe_schema_find(symbol) || has_letter_before(symbol))
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(exact); i++)
		if (strcmp(symbol, exact[i]) == 0)
			return true;
	for (size_t i = 0; i < ARRAY_SIZE(beginnings); i++)
		if (strncmp(symbol, beginnings[i], strlen(beginnings[i])) == 0)
			return true;
	return false;
}
