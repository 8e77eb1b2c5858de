/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/frames/first_function.h"

#include "common/elf/elf_section.h"
#include "common/scope.h"

#include <gelf.h>
#include <string.h>

#define MOVE_MAX_BYTES 5 /* skip_move() */
#define MOVE_MIN_BYTES 2
#define CALL_BYTES     5 /* e8, and the distance */

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

static void note_symbols(struct exit_functions *exits, const struct elf_symbol_table *table)
{
	static const char *const names[] = {"exit", "pthread_exit", "__pthread_exit"};
	GElf_Sym symbol;

	for (size_t i = 0; i < table->nr; i++) {
		const char *name = elf_symbol_table_read(table, i, &symbol);

		/* An undefined symbol is of another library. Its address may be a PLT entry's. */
		if (!name || symbol.st_shndx == SHN_UNDEF)
			continue;
		for (size_t j = 0; j < ARRAY_SIZE(names); j++)
			if (exits->nr < EXIT_FUNCTIONS_MAX && strcmp(name, names[j]) == 0)
				exits->at[exits->nr++] = symbol.st_value;
	}
}

/* Once for each file. */
static void find_exits(struct exit_functions *exits, Elf *elf)
{
	static const uint32_t types[] = {SHT_DYNSYM, SHT_SYMTAB};
	struct elf_symbol_table table;

	exits->is_known = true;
	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (elf_symbol_table_find(elf, types[i], &table))
			note_symbols(exits, &table);
}

bool first_function_returns_to(Elf *elf, struct exit_functions *exits, uint64_t file_offset,
			       uint64_t vaddr)
{
	size_t size;
	const char *file = elf_rawfile(elf, &size);
	const uint8_t *start, *at;
	int32_t distance;

	if (!file || file_offset > size || size - file_offset < MOVE_MAX_BYTES + CALL_BYTES ||
	    !elf_section_has_bytes(elf, file_offset, MOVE_MIN_BYTES + CALL_BYTES))
		return false;
	start = at = (const uint8_t *)file + file_offset;
	if (!skip_move(&at) || *at != 0xe8)
		return false;
	memcpy(&distance, at + 1, sizeof(distance));
	vaddr += (uint64_t)(at - start) + CALL_BYTES + (uint64_t)(int64_t)distance;
	if (!exits->is_known)
		find_exits(exits, elf);
	for (size_t i = 0; i < exits->nr; i++)
		if (exits->at[i] == vaddr)
			return true;
	return false;
}
