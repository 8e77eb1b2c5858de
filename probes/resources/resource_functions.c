/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/resources/resource_functions.h"

#include "probes/elf/function_lines.h"
#include "probes/elf/named_functions.h"

#include "common/diag.h"
#include "common/proc/mapped_files.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* "libx.so" and "lib/libx.so" match /usr/lib/libx.so; libpool.so also matches libpool.so.3.1. */
static bool names_file(const char *name, const char *path)
{
	size_t len = strlen(name), path_len = strlen(path);
	const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;

	if (len <= path_len && strcmp(path + path_len - len, name) == 0 &&
	    (len == path_len || path[path_len - len - 1] == '/' || *name == '/'))
		return true;
	return !strchr(name, '/') && strncmp(base, name, len) == 0 &&
	       strncmp(base + len, ".", 1) == 0;
}

bool resource_function_find(const struct mapped_file *mapped, const struct elf_image *image,
			    const struct debug_symbols_files *debug, const struct pair_call *call,
			    struct elf_function *ret)
{
	switch (call->naming) {
	case PAIR_BY_SYMBOL:
		return named_function_find(image, call->name, ret);
	case PAIR_BY_OFFSET:
		return names_file(call->name, mapped->display) &&
		       named_function_at(image, call->number, ret);
	case PAIR_BY_LINE:
		return function_lines_find(image, debug, call->name, (int)call->number, ret);
	}
	return false;
}

int resource_functions_check(pid_t pid, const struct resource_specs *specs,
			     const struct found_functions *found)
{
	for (size_t i = 0; i < specs->nr; i++) {
		for (size_t j = 0; j < specs->pairs[i].nr; j++) {
			const struct pair_call *call = &specs->pairs[i].calls[j];

			if (found[i].is_found[j])
				continue;
			if (call->naming == PAIR_BY_SYMBOL)
				diag_error("process %d has mapped no file that defines %s; if its "
					   "symbols were stripped, give FILE+OFFSET",
					   (int)pid, call->name);
			else if (call->naming == PAIR_BY_OFFSET)
				diag_error("process %d has mapped no code at %s+0x%" PRIx64,
					   (int)pid, call->name, call->number);
			else
				diag_error("process %d: the debugging information of its files "
					   "has no function at %s:%" PRIu64,
					   (int)pid, call->name, call->number);
			return -ENOENT;
		}
	}
	return 0;
}

void resource_functions_mark(const struct mapped_file *mapped, const struct elf_image *image,
			     const struct debug_symbols_files *debug,
			     const struct resource_specs *specs, struct found_functions *found)
{
	struct elf_function function;

	for (size_t i = 0; i < specs->nr; i++)
		for (size_t j = 0; j < specs->pairs[i].nr; j++)
			if (!found[i].is_found[j])
				found[i].is_found[j] = resource_function_find(
					mapped, image, debug, &specs->pairs[i].calls[j], &function);
}
