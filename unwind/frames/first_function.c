/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/frames/first_function.h"

#include <gelf.h>
#include <limits.h>
#include <string.h>

#define CALL_BYTES 5 /* e8, and the distance */

/* Skips @bytes if the code at *@at begins with them. */
static bool skip(const uint8_t **at, const char *bytes, size_t nr)
{
	if (memcmp(*at, bytes, nr) != 0)
		return false;
	*at += nr;
	return true;
}

/* Skips what moves the result, an int or a pointer, to the first argument. */
static bool skip_move(const uint8_t **at)
{
	skip(at, "\x48\x98", 2); /* cltq */
	skip(at, "\x48", 1);
	return skip(at, "\x89\xc7", 2); /* mov %eax,%edi */
}

static bool has_symbol(Elf *elf, Elf_Scn *section, const GElf_Shdr *header, uint64_t vaddr)
{
	static const char *const names[] = {"exit", "pthread_exit", "__pthread_exit"};
	Elf_Data *data = elf_getdata(section, NULL);
	size_t nr = data && header->sh_entsize ? data->d_size / header->sh_entsize : 0;
	GElf_Sym symbol;

	for (size_t i = 0; i < nr && i <= INT_MAX && gelf_getsym(data, (int)i, &symbol); i++) {
		const char *name;

		/* Of an undefined symbol it is the address of a PLT entry: another library's
		 * exit(). */
		if (symbol.st_value != vaddr || symbol.st_shndx == SHN_UNDEF)
			continue;
		name = elf_strptr(elf, header->sh_link, symbol.st_name);
		for (size_t j = 0; name && j < sizeof(names) / sizeof(names[0]); j++)
			if (strcmp(name, names[j]) == 0)
				return true;
	}
	return false;
}

bool first_function_returns_to(Elf *elf, uint64_t file_offset, uint64_t vaddr)
{
	size_t size;
	const char *file = elf_rawfile(elf, &size);
	const uint8_t *start, *at;
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	int32_t distance;

	/* The longest code is 10 bytes. */
	if (!file || file_offset > size || size - file_offset < 5 + CALL_BYTES)
		return false;
	start = at = (const uint8_t *)file + file_offset;
	if (!skip_move(&at) || *at != 0xe8)
		return false;
	memcpy(&distance, at + 1, sizeof(distance));
	vaddr += (uint64_t)(at - start) + CALL_BYTES + (uint64_t)(int64_t)distance;
	while ((section = elf_nextscn(elf, section)) && gelf_getshdr(section, &header))
		if ((header.sh_type == SHT_DYNSYM || header.sh_type == SHT_SYMTAB) &&
		    has_symbol(elf, section, &header, vaddr))
			return true;
	return false;
}
