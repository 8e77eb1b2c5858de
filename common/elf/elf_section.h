/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Walks through the sections of an ELF file. */
#ifndef LEAKTOOLS_COMMON_ELF_SECTION_H
#define LEAKTOOLS_COMMON_ELF_SECTION_H

#include <gelf.h>
#include <stdbool.h>
#include <stdint.h>

/* Zeroed, it comes before the first section. */
struct elf_section {
	Elf_Scn *handle;
	GElf_Shdr header;
	const char *name; /* NULL: it cannot be read */
};

/* Goes to the next section whose header can be read. Returns false after the last one. */
bool elf_section_next(Elf *elf, struct elf_section *section);

/*
 * True if the contents of a section have these bytes of the file, or if it has no sections. Nothing
 * but a section's contents may be read in a copy (unwind/modules/frames_copy.h): the rest is not
 * what the file has, and takes memory.
 */
bool elf_section_has_bytes(Elf *elf, uint64_t offset, uint64_t size);

/* A symbol table whose names may be read. */
struct elf_symbol_table {
	Elf *elf;
	Elf_Data *data;
	size_t nr, strings;
};

/*
 * Finds the table of @type, SHT_DYNSYM or SHT_SYMTAB. A linked file has one of each (gABI,
 * "Sections"); a hostile one may have tens of thousands of the same bytes, and sizes that libelf
 * would allocate. So it is the first one, if it has a plausible size.
 */
bool elf_symbol_table_find(Elf *elf, uint32_t type, struct elf_symbol_table *ret);

/* Reads the symbol @at, which is less than nr. Returns its name, or NULL. */
const char *elf_symbol_table_read(const struct elf_symbol_table *table, size_t at, GElf_Sym *ret);

#endif
