/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/elf/named_functions.h"

#include <string.h>

/* A search by name, or by offset (that of @found). */
struct search {
	const struct elf_image *image;
	const char *name;
	struct elf_function *found;
};

static bool match_local(void *context, const struct elf_symbol *symbol)
{
	const struct search *search = context;

	if (symbol->type == STT_FUNC && !symbol->is_import && symbol->is_local &&
	    strcmp(symbol->name, search->name) == 0)
		elf_image_locate(search->image, symbol, search->found);
	return !search->found->is_found;
}

bool named_function_find(const struct elf_image *image, const char *name, struct elf_function *ret)
{
	struct search search = {image, name, ret};

	elf_image_find_functions(image, &name, 1, ret);
	if (!ret->is_found)
		elf_image_visit_symbols(image, match_local, &search);
	return ret->is_found;
}

/* Keeps the size of the longest function at the offset. */
static bool match_size(void *context, const struct elf_symbol *symbol)
{
	struct elf_function found = {0}, *wanted = ((struct search *)context)->found;

	if (symbol->type == STT_FUNC && !symbol->is_import &&
	    elf_image_locate(((struct search *)context)->image, symbol, &found) &&
	    found.offset == wanted->offset && found.size_bytes > wanted->size_bytes)
		wanted->size_bytes = found.size_bytes;
	return true;
}

bool named_function_at(const struct elf_image *image, uint64_t offset, struct elf_function *ret)
{
	struct search search = {.image = image, .found = ret};
	uint64_t start, size_bytes;

	*ret = (struct elf_function){.offset = offset};
	for (size_t i = 0; elf_image_code_segment(image, i, &start, &size_bytes); i++)
		ret->is_found |= offset >= start && offset - start < size_bytes;
	if (ret->is_found)
		elf_image_visit_symbols(image, match_size, &search);
	return ret->is_found;
}
