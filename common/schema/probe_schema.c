/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/schema/probe_schema.h"

#include "common/scope.h"

#include <string.h>

/* Prototypes and argument names: glibc's malloc/malloc.c (2.36). */
static const struct probe_schema schema_table[] = {
	{"malloc", HEAP_ALLOC, 1, {"bytes"}, 0, -1, -1, FAMILY_MALLOC},
	{"calloc", HEAP_ALLOC, 2, {"n", "elem_size"}, 1, 0, -1, FAMILY_MALLOC},
	{"realloc", HEAP_REALLOC, 2, {"oldmem", "bytes"}, 1, -1, 0, FAMILY_MALLOC},
	{"aligned_alloc", HEAP_ALLOC, 2, {"alignment", "bytes"}, 1, -1, -1, FAMILY_MALLOC},
	{"memalign", HEAP_ALLOC, 2, {"alignment", "bytes"}, 1, -1, -1, FAMILY_MALLOC},
	{"posix_memalign",
	 HEAP_ALLOC_TO_PTR,
	 3,
	 {"memptr", "alignment", "size"},
	 2,
	 -1,
	 0,
	 FAMILY_MALLOC},
	{"valloc", HEAP_ALLOC, 1, {"bytes"}, 0, -1, -1, FAMILY_MALLOC},
	{"pvalloc", HEAP_ALLOC, 1, {"bytes"}, 0, -1, -1, FAMILY_MALLOC},
	{"free", HEAP_RELEASE, 1, {"mem"}, -1, -1, 0, FAMILY_MALLOC},
	{"reallocarray", HEAP_REALLOC, 3, {"oldmem", "n", "elem_size"}, 2, 1, 0, FAMILY_MALLOC},
	/*
	 * jemalloc's own functions (jemalloc(3)). Their flags, and the sizes passed to releases,
	 * are not recorded.
	 */
	{"mallocx", HEAP_ALLOC, 1, {"bytes"}, 0, -1, -1, FAMILY_MALLOC},
	{"rallocx", HEAP_REALLOC, 2, {"oldmem", "bytes"}, 1, -1, 0, FAMILY_MALLOC},
	{"dallocx", HEAP_RELEASE, 1, {"mem"}, -1, -1, 0, FAMILY_MALLOC},
	{"sdallocx", HEAP_RELEASE, 1, {"mem"}, -1, -1, 0, FAMILY_MALLOC},
	/*
	 * C++'s operators. A row stands for all forms of one: in each, the size or the block comes
	 * first.
	 */
	{"operator_new", HEAP_ALLOC, 1, {"bytes"}, 0, -1, -1, FAMILY_NEW},
	{"operator_new_array", HEAP_ALLOC, 1, {"bytes"}, 0, -1, -1, FAMILY_NEW_ARRAY},
	{"operator_delete", HEAP_RELEASE, 1, {"mem"}, -1, -1, 0, FAMILY_NEW},
	{"operator_delete_array", HEAP_RELEASE, 1, {"mem"}, -1, -1, 0, FAMILY_NEW_ARRAY},
	/*
	 * Rows for code that several functions share, where it is unknown or does not matter which
	 * one was called.
	 */
	{"new", HEAP_ALLOC, 1, {"bytes"}, 0, -1, -1, FAMILY_ANY},
	{"delete", HEAP_RELEASE, 1, {"mem"}, -1, -1, 0, FAMILY_ANY},
	{"malloc_or_new", HEAP_ALLOC, 1, {"bytes"}, 0, -1, -1, FAMILY_ANY},
	{"free_or_delete", HEAP_RELEASE, 1, {"mem"}, -1, -1, 0, FAMILY_ANY},
};

const struct probe_schema probe_schema_mark = {"leak_mark", HEAP_MARK, 1,  {"text"},
					       -1,	    -1,	       -1, FAMILY_ANY};

const struct probe_schema *probe_schema_table(size_t *ret_nr)
{
	*ret_nr = ARRAY_SIZE(schema_table);
	return schema_table;
}

const struct probe_schema *probe_schema_find(const char *function)
{
	for (size_t i = 0; i < ARRAY_SIZE(schema_table); i++)
		if (strcmp(schema_table[i].function, function) == 0)
			return &schema_table[i];
	return NULL;
}
