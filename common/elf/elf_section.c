/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/elf/elf_section.h"

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

bool elf_section_has_strings(Elf *elf, size_t number)
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
