/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Walks through the sections of an ELF file. */
#ifndef LEAKTOOLS_COMMON_ELF_SECTION_H
#define LEAKTOOLS_COMMON_ELF_SECTION_H

#include <gelf.h>
#include <stdbool.h>

/* Zeroed, it comes before the first section. */
struct elf_section {
	Elf_Scn *handle;
	GElf_Shdr header;
	const char *name; /* NULL: it cannot be read */
};

/* Goes to the next section whose header can be read. Returns false after the last one. */
bool elf_section_next(Elf *elf, struct elf_section *section);

#endif
