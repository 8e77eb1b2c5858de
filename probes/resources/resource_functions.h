/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds the functions that the user names for resources in the files of a process. */
#ifndef LEAKTOOLS_PROBES_RESOURCE_FUNCTIONS_H
#define LEAKTOOLS_PROBES_RESOURCE_FUNCTIONS_H

#include "probes/elf/debug_symbols.h"
#include "probes/resources/resource_specs.h"

#include <sys/types.h>

struct mapped_file;

/* Which functions of one pair_spec were found, by the number of the call. */
struct found_functions {
	bool is_found[PAIR_MAX_CALLS];
};

/*
 * Finds the function of @call in @image, which is @mapped's. @debug: its debug file, or NULL.
 * Returns false if it is not there.
 */
bool resource_function_find(const struct mapped_file *mapped, const struct elf_image *image,
			    const struct debug_symbols_files *debug, const struct pair_call *call,
			    struct elf_function *ret);

/* Marks in @found those functions of @specs that are there. */
void resource_functions_mark(const struct mapped_file *mapped, const struct elf_image *image,
			     const struct debug_symbols_files *debug,
			     const struct resource_specs *specs, struct found_functions *found);

/*
 * Returns 0 if process @pid has all functions of @specs, by @found with an element for each pair;
 * otherwise -ENOENT after reporting the first that is missing.
 */
int resource_functions_check(pid_t pid, const struct resource_specs *specs,
			     const struct found_functions *found);

#endif
