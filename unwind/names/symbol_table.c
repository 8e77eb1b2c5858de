/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/names/symbol_table.h"

#include "common/partition_point.h"
#include "unwind/names/demangler.h"

#include <errno.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>

/* Steps back from an address to the function around it, over symbols inside that function. */
#define MAX_STEPS_BACK 256

/* Finds the section that defines the symbol. Returns false if it holds no code. */
static bool code_section(Elf *elf, GElf_Word index, GElf_Shdr *ret)
{
	Elf_Scn *section;

	if (index == SHN_UNDEF || (index >= SHN_LORESERVE && index != SHN_XINDEX))
		return false;
	section = elf_getscn(elf, index);
	return section && gelf_getshdr(section, ret) && (ret->sh_flags & SHF_EXECINSTR);
}

/* True if @elf has a full symbol table. A dynamic one lacks static functions. */
static bool has_full_table(Elf *elf)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;

	while ((section = elf_nextscn(elf, section)))
		if (gelf_getshdr(section, &header) && header.sh_type == SHT_SYMTAB)
			return true;
	return false;
}

static bool is_function(int type, const char *name)
{
	if (!name || !*name)
		return false;
	if (type == STT_FUNC || type == STT_GNU_IFUNC)
		return true;
	/* Labels of assembler code. "$x" and "$d" only mark code and data (AArch64 ELF ABI). */
	return type == STT_NOTYPE && name[0] != '$';
}

/* Converts libdwfl's symbol @index. Returns false if it is not a function. */
static bool read_symbol(Dwfl_Module *module, int index, bool full, struct symbol *ret)
{
	GElf_Word section_index;
	GElf_Shdr section;
	GElf_Addr value;
	Dwarf_Addr bias;
	GElf_Sym sym;
	Elf *elf;
	const char *name =
		dwfl_module_getsym_info(module, index, &sym, &value, &section_index, &elf, &bias);

	if (!is_function(GELF_ST_TYPE(sym.st_info), name) ||
	    !code_section(elf, section_index, &section))
		return false;

	*ret = (struct symbol){
		.start = value,
		.mangled = name,
		.binding = GELF_ST_BIND(sym.st_info),
		.sized = sym.st_size != 0,
	};
	if (sym.st_size)
		ret->end = value + sym.st_size;
	else if (full)
		ret->end = section.sh_addr + section.sh_size + (value - sym.st_value);
	return ret->end > ret->start;
}

static size_t leading_underscores(const char *name)
{
	return strspn(name, "_");
}

/* Excludes the version: "memcpy@@GLIBC_2.14". */
static size_t name_length(const char *mangled)
{
	return *mangled ? 1 + strcspn(mangled + 1, "@") : 0;
}

/*
 * Orders by address. Of several names for one address the best comes last, where a lookup meets it
 * first: one with a size, global, with few underscores, short.
 */
static int compare_symbols(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->sized != y->sized)
		return x->sized ? 1 : -1;
	if ((x->binding == STB_LOCAL) != (y->binding == STB_LOCAL))
		return x->binding == STB_LOCAL ? -1 : 1;

	size_t x_len = leading_underscores(x->mangled), y_len = leading_underscores(y->mangled);
	if (x_len != y_len)
		return x_len > y_len ? -1 : 1;
	x_len = name_length(x->mangled);
	y_len = name_length(y->mangled);
	if (x_len != y_len)
		return x_len > y_len ? -1 : 1;
	return strcmp(y->mangled, x->mangled);
}

int symbol_table_init(struct symbol_table *table, Dwfl_Module *module)
{
	int nr = dwfl_module_getsymtab(module);
	Dwarf_Addr bias;
	Elf *elf = dwfl_module_getelf(module, &bias);
	Dwarf *dwarf = dwfl_module_getdwarf(module, &bias);
	bool full = (elf && has_full_table(elf)) || (dwarf && has_full_table(dwarf_getelf(dwarf)));
	uint64_t highest_end = 0;

	*table = (struct symbol_table){0};
	if (nr <= 0)
		return 0;
	table->symbols = calloc((size_t)nr, sizeof(*table->symbols));
	if (!table->symbols)
		return -ENOMEM;
	for (int i = 0; i < nr; i++)
		if (read_symbol(module, i, full, &table->symbols[table->nr]))
			table->nr++;

	qsort(table->symbols, table->nr, sizeof(*table->symbols), compare_symbols);
	for (size_t i = 0; i < table->nr; i++) {
		if (table->symbols[i].sized && table->symbols[i].end > highest_end)
			highest_end = table->symbols[i].end;
		table->symbols[i].highest_end = highest_end;
	}
	return 0;
}

void symbol_table_deinit(struct symbol_table *table)
{
	for (size_t i = 0; i < table->nr; i++)
		free(table->symbols[i].name);
	free(table->symbols);
}

struct symbol *symbol_table_find(const struct symbol_table *table, uint64_t address)
{
	size_t nr = partition_point(table->nr, i, table->symbols[i].start <= address);
	struct symbol *closest;

	if (!nr)
		return NULL;
	closest = &table->symbols[nr - 1];

	for (size_t i = nr, steps = 0; i > 0 && steps < MAX_STEPS_BACK; i--, steps++) {
		struct symbol *symbol = &table->symbols[i - 1];

		if (symbol->highest_end <= address)
			break;
		if (symbol->sized && address < symbol->end)
			return symbol;
	}
	/*
	 * No function holds it. A label does, but not one inside a function that has ended before.
	 */
	if (!closest->sized && address < closest->end && closest->highest_end <= closest->start)
		return closest;
	return NULL;
}

const char *symbol_name(struct symbol *symbol)
{
	if (symbol->name)
		return symbol->name;

	symbol->name = demangle(symbol->mangled);
	if (!symbol->name) {
		size_t len = name_length(symbol->mangled);

		if (len > DEMANGLE_MAX_RESULT)
			len = DEMANGLE_MAX_RESULT;
		symbol->name = strndup(symbol->mangled, len);
	}
	return symbol->name;
}
