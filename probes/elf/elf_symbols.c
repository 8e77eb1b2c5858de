/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The symbols of an ELF file. libelf would allocate whatever size a table claims, and search for
 * the end of each name from the end of the table. So tables are read here, piece by piece.
 */
#include "probes/elf/elf_image.h"

#include "probes/elf/analysis_limit.h"

#include "common/elf/elf_file.h"
#include "common/scope.h"

#include <errno.h>
#include <stdlib.h>

#define MAX_STRINGS_BYTES (256ull << 20)
#define MAX_NAME_BYTES	  (64u << 10)
#define READ_BYTES	  (4u << 20)
#define NR_AT_A_TIME	  16384	 /* symbols */
#define STEPS_OF_A_SYMBOL 64	 /* for analysis_limit.h; the length of the name is added */
#define HIDDEN_VERSION	  0x8000 /* the symbol is not the default version (VERSYM_HIDDEN) */

/* Reads exactly @size bytes. Returns false if it cannot, or if that takes too long. */
static bool read_bytes(int fd, uint64_t offset, void *buffer, uint64_t size)
{
	char *to = buffer;

	while (size > 0) {
		size_t part = size < READ_BYTES ? size : READ_BYTES;
		ssize_t len = pread(fd, to, part, (off_t)offset);

		if (len < 0 && errno == EINTR)
			continue;
		if (len <= 0 || analysis_limit_is_reached((uint64_t)len))
			return false;
		to += len;
		offset += (uint64_t)len;
		size -= (uint64_t)len;
	}
	return true;
}

/* The first section of @type, or NULL. elf_file_begin() limits their number. */
static Elf_Scn *find_section(Elf *elf, uint32_t type, GElf_Shdr *ret_header)
{
	Elf_Scn *section = NULL;

	while ((section = elf_nextscn(elf, section)))
		if (gelf_getshdr(section, ret_header) && ret_header->sh_type == type)
			return section;
	return NULL;
}

/* A symbol table of the file or of its debug file. */
struct table {
	Elf *elf;
	int fd;
	GElf_Shdr header;
};

static void read_strings(const struct table *table, struct elf_strings *strings)
{
	Elf_Scn *section = elf_getscn(table->elf, table->header.sh_link);
	_cleanup_free_ char *bytes = NULL;
	GElf_Shdr header;

	strings->is_read = true;
	if (!section || !gelf_getshdr(section, &header) || header.sh_type != SHT_STRTAB ||
	    header.sh_size == 0 || header.sh_size > MAX_STRINGS_BYTES ||
	    !elf_file_has_data(table->fd, header.sh_offset, header.sh_size))
		return;
	bytes = malloc(header.sh_size);
	/* If the last name ends within the table, all do. */
	if (!bytes || !read_bytes(table->fd, header.sh_offset, bytes, header.sh_size) ||
	    bytes[header.sh_size - 1] != '\0')
		return;
	strings->bytes = steal_ptr(bytes);
	strings->size_bytes = header.sh_size;
}

/* The name at @offset, or NULL if there is none of a plausible length. */
static const char *find_name(const struct elf_strings *strings, uint64_t offset, size_t *ret_len)
{
	uint64_t left;

	if (offset >= strings->size_bytes)
		return NULL;
	left = strings->size_bytes - offset;
	*ret_len = strnlen(strings->bytes + offset, left < MAX_NAME_BYTES ? left : MAX_NAME_BYTES);
	return *ret_len > 0 && *ret_len < MAX_NAME_BYTES ? strings->bytes + offset : NULL;
}

/* Some symbols of a table, and their versions; 0: a symbol has none. */
struct piece {
	Elf64_Sym symbols[NR_AT_A_TIME];
	Elf64_Half versions[NR_AT_A_TIME];
	size_t nr;
	bool is_dynsym;
};

/* Visits the symbols of a piece. Returns false if @visit or the limit ended the search. */
static bool visit_piece(const struct piece *piece, const struct elf_strings *strings,
			elf_symbol_visit *visit, void *context)
{
	for (size_t i = 0; i < piece->nr; i++) {
		const Elf64_Sym *found = &piece->symbols[i];
		struct elf_symbol symbol = {
			.address = found->st_value,
			.size_bytes = found->st_size,
			.type = ELF64_ST_TYPE(found->st_info),
			.is_local = ELF64_ST_BIND(found->st_info) == STB_LOCAL,
			.is_import = found->st_shndx == SHN_UNDEF,
			.in_dynsym = piece->is_dynsym,
			.is_old = piece->versions[i] & HIDDEN_VERSION,
		};
		size_t len = 0;

		if (!symbol.is_import && symbol.address == 0)
			continue;
		symbol.name = find_name(strings, found->st_name, &len);
		if (analysis_limit_is_reached(STEPS_OF_A_SYMBOL + len) ||
		    (symbol.name && !visit(context, &symbol)))
			return false;
	}
	return true;
}

/* Visits a table piece by piece. Returns false if @visit or the limit ended the search. */
static bool visit_table(const struct table *table, const struct elf_strings *strings,
			elf_symbol_visit *visit, void *context)
{
	uint64_t nr = table->header.sh_size / sizeof(Elf64_Sym);
	_cleanup_free_ struct piece *piece = calloc(1, sizeof(*piece));
	GElf_Shdr versions = {0};

	if (!piece)
		return true;
	piece->is_dynsym = table->header.sh_type == SHT_DYNSYM;
	if (piece->is_dynsym && !find_section(table->elf, SHT_GNU_versym, &versions))
		versions = (GElf_Shdr){0};
	for (uint64_t at = 0; at < nr; at += piece->nr) {
		uint64_t version_at = at * sizeof(Elf64_Half);

		piece->nr = nr - at < NR_AT_A_TIME ? nr - at : NR_AT_A_TIME;
		if (!read_bytes(table->fd, table->header.sh_offset + at * sizeof(Elf64_Sym),
				piece->symbols, piece->nr * sizeof(Elf64_Sym)))
			return !analysis_limit_is_reached(0);
		memset(piece->versions, 0, sizeof(piece->versions));
		if (version_at + piece->nr * sizeof(Elf64_Half) <= versions.sh_size &&
		    !read_bytes(table->fd, versions.sh_offset + version_at, piece->versions,
				piece->nr * sizeof(Elf64_Half)))
			memset(piece->versions, 0, sizeof(piece->versions));
		if (!visit_piece(piece, strings, visit, context))
			return false;
	}
	return true;
}

/*
 * Visits one table. A file has one of each type (gABI, "Sections"); a hostile file may have many
 * copies, to fill the memory. Returns false if @visit ended the search.
 */
static bool visit_table_of(const struct elf_image *image, enum elf_table which,
			   elf_symbol_visit *visit, void *context)
{
	bool in_debug = which == ELF_DEBUG_SYMTAB;
	struct table table = {
		in_debug ? image->debug : image->elf, in_debug ? image->debug_fd : image->fd, {0}};
	struct elf_strings *strings = &image->strings[which];

	if (!table.elf || !image->is_native ||
	    !find_section(table.elf, which == ELF_DYNSYM ? SHT_DYNSYM : SHT_SYMTAB,
			  &table.header) ||
	    table.header.sh_size == 0)
		return true;
	if (!strings->is_read)
		read_strings(&table, strings);
	if (strings->bytes &&
	    elf_file_has_data(table.fd, table.header.sh_offset, table.header.sh_size))
		return visit_table(&table, strings, visit, context);
	/*
	 * If the file's own table cannot be used, the search has failed; a debug file may be
	 * replaced by a better one.
	 */
	if (!in_debug)
		analysis_limit_reach();
	return true;
}

void elf_image_visit_symbols(const struct elf_image *image, elf_symbol_visit *visit, void *context)
{
	if (visit_table_of(image, ELF_DYNSYM, visit, context) &&
	    visit_table_of(image, ELF_SYMTAB, visit, context))
		visit_table_of(image, ELF_DEBUG_SYMTAB, visit, context);
}

bool elf_image_has_symtab(const struct elf_image *image)
{
	GElf_Shdr header;

	return find_section(image->elf, SHT_SYMTAB, &header) != NULL;
}

bool elf_image_symbol_name(const struct elf_image *image, size_t section, uint64_t nr, char *ret,
			   size_t size)
{
	Elf_Scn *table = elf_getscn(image->elf, section), *strings;
	GElf_Shdr header, names;
	Elf64_Sym symbol;
	uint64_t left;

	if (!image->is_native || !table || !gelf_getshdr(table, &header) ||
	    (header.sh_type != SHT_DYNSYM && header.sh_type != SHT_SYMTAB) ||
	    nr >= header.sh_size / sizeof(symbol) ||
	    elf_image_read(image, header.sh_offset + nr * sizeof(symbol), &symbol, sizeof(symbol)))
		return false;
	strings = elf_getscn(image->elf, header.sh_link);
	if (!strings || !gelf_getshdr(strings, &names) || symbol.st_name >= names.sh_size)
		return false;
	left = names.sh_size - symbol.st_name;
	if (left < size)
		size = left;
	return elf_image_read(image, names.sh_offset + symbol.st_name, ret, size) == 0 &&
	       memchr(ret, '\0', size);
}
