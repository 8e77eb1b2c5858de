/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/elf/elf_section.h"

#include <stddef.h>

/* The largest programs have 3 million symbols. */
#define MAX_SYMBOLS_BYTES ((1u << 22) * sizeof(Elf64_Sym))

bool elf_section_next(Elf *elf, struct elf_section *section)
{
	size_t names;

	if (elf_getshdrstrndx(elf, &names))
		names = SHN_UNDEF; /* a table of names without any */
	while ((section->handle = elf_nextscn(elf, section->handle))) {
		if (!gelf_getshdr(section->handle, &section->header))
			continue;
		section->name = elf_strptr(elf, names, section->header.sh_name);
		return true;
	}
	return false;
}

bool elf_section_has_bytes(Elf *elf, uint64_t offset, uint64_t size)
{
	Elf_Scn *section = NULL;
	bool has_sections = false;
	GElf_Shdr header;

	while ((section = elf_nextscn(elf, section))) {
		has_sections = true;
		if (gelf_getshdr(section, &header) && header.sh_type != SHT_NOBITS &&
		    offset >= header.sh_offset && size <= header.sh_size &&
		    offset - header.sh_offset <= header.sh_size - size)
			return true;
	}
	return !has_sections;
}

/*
 * True if elf_strptr() can be trusted with section @number: a table that is not compressed, which
 * it would expand, and that ends with a NUL. Otherwise it looks for one from the table's end on,
 * for each name, which takes hours if the file is made for that.
 */
static bool has_strings(Elf *elf, size_t number)
{
	Elf_Scn *section = elf_getscn(elf, number);
	GElf_Shdr header;
	const Elf_Data *data;

	if (!section || !gelf_getshdr(section, &header) || header.sh_flags & SHF_COMPRESSED)
		return false;
	data = elf_rawdata(section, NULL);
	return data && data->d_buf && data->d_size > 0 &&
	       ((const char *)data->d_buf)[data->d_size - 1] == '\0';
}

bool elf_symbol_table_find(Elf *elf, uint32_t type, struct elf_symbol_table *ret)
{
	struct elf_section section = {0};

	*ret = (struct elf_symbol_table){.elf = elf};
	while (elf_section_next(elf, &section)) {
		const GElf_Shdr *header = &section.header;

		if (header->sh_type != type)
			continue;
		if (header->sh_size > MAX_SYMBOLS_BYTES || !has_strings(elf, header->sh_link))
			return false;
		ret->data = elf_getdata(section.handle, NULL);
		/* Its sh_entsize may be anything. */
		ret->nr = ret->data ? ret->data->d_size / gelf_fsize(elf, ELF_T_SYM, 1, EV_CURRENT)
				    : 0;
		ret->strings = header->sh_link;
		return true;
	}
	return false;
}

const char *elf_symbol_table_read(const struct elf_symbol_table *table, size_t at, GElf_Sym *ret)
{
	return gelf_getsym(table->data, (int)at, ret)
		       ? elf_strptr(table->elf, table->strings, ret->st_name)
		       : NULL;
}
