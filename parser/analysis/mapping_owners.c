/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/analysis/mapping_owners.h"

#include "common/schema/probe_schema.h"
#include "common/scope.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_STACKS ((size_t)256)
#define MAX_FRAMES   ((size_t)64) /* an allocator's frames are near the innermost one */

void mapping_owners_deinit(struct mapping_owners *owners)
{
	free(owners->of_stack);
	*owners = (struct mapping_owners){0};
}

/* glibc 2.36 and musl 1.2 have aliases with these prefixes, which static programs show. */
static const char *without_prefix(const char *function)
{
	static const char *const prefixes[] = {"GI_", "libc_", "je_", "tc_", "mi_"};

	function += strspn(function, "_");
	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++) {
		size_t len = strlen(prefixes[i]);

		if (strncmp(function, prefixes[i], len) == 0) {
			function += len;
			function += strspn(function, "_");
		}
	}
	return function;
}

/* A name ends at "@", where a symbol's version begins. */
static bool is_one_of(const char *function, const char *const *list, size_t nr)
{
	const char *name = without_prefix(function);
	size_t len = strcspn(name, "@");

	for (size_t i = 0; i < nr; i++)
		if (strlen(list[i]) == len && memcmp(list[i], name, len) == 0)
			return true;
	return false;
}

static bool is_allocator(const char *function)
{
	/* Internal functions, for stacks that do not show a public one. */
	static const char *const others[] = {
		"sysmalloc",   "int_malloc",	     "int_memalign",
		"int_realloc", "pthread_create",     "allocate_stack",
		"int_free",    "pthread_create_2_1", "dl_early_allocate",
	};

	if (!function)
		return false;
	return probe_schema_find(without_prefix(function)) ||
	       is_one_of(function, others, ARRAY_SIZE(others));
}

static bool is_wrapper(const char *function)
{
	static const char *const wrappers[] = {"mmap", "mmap64", "munmap", "mremap",
					       "brk",  "sbrk",	 "syscall"};

	return function && is_one_of(function, wrappers, ARRAY_SIZE(wrappers));
}

static bool is_runtime(const char *module)
{
	static const char *const beginnings[] = {
		"libc.so", "libc-2.", "libc.musl",  "ld-linux",	   "ld-2.",	  "ld-musl",
		"ld.so",   "ld64.so", "libpthread", "libjemalloc", "libtcmalloc", "libmimalloc",
	};
	const char *slash = module ? strrchr(module, '/') : NULL;
	const char *base = slash ? slash + 1 : module;

	for (size_t i = 0; base && i < ARRAY_SIZE(beginnings); i++)
		if (strncmp(base, beginnings[i], strlen(beginnings[i])) == 0)
			return true;
	return false;
}

/*
 * Functions that call the program and map nothing themselves. In stacks by frame pointers of perf
 * events the function that they called is missing, so they seem to have called the wrapper.
 */
static bool is_caller_of_program(const char *function)
{
	static const char *const names[] = {"start_thread", "clone", "clone3", "start_call_main",
					    "start_main"};

	return function && is_one_of(function, names, ARRAY_SIZE(names));
}

static enum mapping_owner judge(struct stack_store *stacks, uint32_t stack_id)
{
	size_t nr = stack_store_nr_frames(stacks, stack_id), nr_callers = 0;
	struct stack_frame frame;

	for (size_t i = 0; i < nr && i < MAX_FRAMES; i++) {
		if (stack_store_frame(stacks, stack_id, i, &frame) ||
		    frame.address <= STACK_LAST_MARK)
			continue;
		if (is_allocator(frame.function))
			return MAPPING_IS_OWN;
		/* The loader has a wrapper of its own. */
		if (i == 0 && frame.module && strstr(frame.module, "/ld"))
			nr_callers += is_runtime(frame.module);
		else if (i == 0 || (!nr_callers && is_wrapper(frame.function)))
			continue;
		else
			nr_callers++;
		if (nr_callers == 1 && is_runtime(frame.module) &&
		    !is_caller_of_program(frame.function))
			return MAPPING_IS_OWN;
	}
	return nr_callers ? MAPPING_IS_PROGRAMS : MAPPING_OWNER_UNKNOWN;
}

int mapping_owners_find(struct mapping_owners *owners, struct stack_store *stacks,
			uint32_t stack_id, enum mapping_owner *ret)
{
	if (stack_id >= owners->nr) {
		size_t nr = owners->nr ? owners->nr : FIRST_STACKS;
		uint8_t *grown;

		while (nr <= stack_id)
			nr *= 2;
		grown = realloc(owners->of_stack, nr);
		if (!grown)
			return -ENOMEM;
		memset(grown + owners->nr, 0, nr - owners->nr);
		owners->of_stack = grown;
		owners->nr = nr;
	}
	if (!owners->of_stack[stack_id])
		owners->of_stack[stack_id] = (uint8_t)(judge(stacks, stack_id) + 1);
	*ret = (enum mapping_owner)(owners->of_stack[stack_id] - 1);
	return 0;
}
