/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/modules/frames_copy.h"

#include "common/elf/memory_file.h"
#include "common/scope.h"

#include <elf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHUNK	     (64u << 10)
#define MAX_BYTES    (64u << 20) /* of a copy; most is call frame information */
#define MAX_SMALL    (64u << 10) /* of a section, or a file */
#define MAX_SECTIONS 4096	 /* as in elf_file.c */

struct copy {
	int from, to;
	uint64_t bytes;
	uint8_t chunk[CHUNK];
};

struct section_table {
	Elf64_Ehdr header;
	Elf64_Shdr *sections;
	char *names;
	size_t names_size;
};

/* What unwinding looks for besides call frame information (cfi_rules.c, first_function.c). */
enum program {
	OTHER,
	GO,	/* its symbols */
	STATIC, /* its symbols and its code: musl has no call frame information */
};

/* Copies what the file has of these bytes. */
static bool copy_bytes(struct copy *copy, uint64_t offset, uint64_t size)
{
	if (size > MAX_BYTES - copy->bytes)
		return false;
	copy->bytes += size;
	while (size > 0) {
		ssize_t nr =
			pread(copy->from, copy->chunk, size < CHUNK ? size : CHUNK, (off_t)offset);

		if (nr <= 0)
			return nr == 0;
		if (pwrite(copy->to, copy->chunk, (size_t)nr, (off_t)offset) != nr)
			return false;
		offset += (uint64_t)nr;
		size -= (uint64_t)nr;
	}
	return true;
}

/* Copies the bytes. Returns what the copy has, and a NUL, which the caller frees; or NULL. */
static void *copy_and_read(struct copy *copy, uint64_t offset, size_t size)
{
	_cleanup_free_ char *bytes = calloc(1, size + 1);

	return bytes && copy_bytes(copy, offset, size) &&
			       pread(copy->to, bytes, size, (off_t)offset) == (ssize_t)size
		       ? steal_ptr(bytes)
		       : NULL;
}

static const char *name_of(const struct section_table *table, const Elf64_Shdr *section)
{
	return section->sh_name < table->names_size ? table->names + section->sh_name : "";
}

static bool begins_with(const char *name, const char *prefix)
{
	return strncmp(name, prefix, strlen(prefix)) == 0;
}

/* Files with other names for .debug_frame are refused, whatever is in it (cfi_guard.c). */
static bool is_frames(const char *name)
{
	return begins_with(name, ".eh_frame") || begins_with(name, ".debug_frame") ||
	       begins_with(name, ".zdebug_frame");
}

static bool is_useful(const Elf64_Shdr *section, const char *name, enum program program)
{
	if (section->sh_size <= MAX_SMALL)
		return !begins_with(name, ".debug") && !begins_with(name, ".zdebug");
	if (section->sh_type == SHT_SYMTAB || section->sh_type == SHT_STRTAB)
		return program != OTHER;
	return program == STATIC && section->sh_flags & SHF_EXECINSTR;
}

static enum program find_program(const struct section_table *table)
{
	enum program program = table->header.e_entry ? STATIC : OTHER;

	for (size_t i = 0; i < table->header.e_shnum; i++) {
		const char *name = name_of(table, &table->sections[i]);

		if (strcmp(name, ".gopclntab") == 0)
			return GO;
		if (strcmp(name, ".interp") == 0)
			program = OTHER;
	}
	return program;
}

/* Copies call frame information first, then what there is room for. */
static bool copy_sections(struct copy *copy, const struct section_table *table)
{
	const Elf64_Shdr *end = table->sections + table->header.e_shnum;
	enum program program = find_program(table);

	for (const Elf64_Shdr *section = table->sections; section < end; section++)
		if (section->sh_type != SHT_NOBITS && is_frames(name_of(table, section)) &&
		    !copy_bytes(copy, section->sh_offset, section->sh_size))
			return false;
	for (const Elf64_Shdr *section = table->sections; section < end; section++)
		if (section->sh_type != SHT_NOBITS && section->sh_size <= MAX_BYTES - copy->bytes &&
		    is_useful(section, name_of(table, section), program) &&
		    !copy_bytes(copy, section->sh_offset, section->sh_size))
			return false;
	return true;
}

static bool copy_parts(struct copy *copy, struct section_table *table)
{
	const Elf64_Ehdr *header = &table->header;
	const Elf64_Shdr *names;

	table->sections =
		copy_and_read(copy, header->e_shoff, header->e_shnum * sizeof(Elf64_Shdr));
	if (!table->sections || header->e_shstrndx >= header->e_shnum ||
	    !copy_bytes(copy, header->e_phoff, header->e_phnum * sizeof(Elf64_Phdr)))
		return false;
	names = &table->sections[header->e_shstrndx];
	if (names->sh_size <= MAX_SMALL)
		table->names = copy_and_read(copy, names->sh_offset, names->sh_size);
	table->names_size = names->sh_size;
	return table->names && copy_sections(copy, table);
}

static bool copy_file(struct copy *copy)
{
	struct section_table table = {.sections = NULL};
	struct stat st;
	bool is_copied;

	if (fstat(copy->from, &st) || !copy_bytes(copy, 0, sizeof(table.header)) ||
	    pread(copy->to, &table.header, sizeof(table.header), 0) != sizeof(table.header))
		return false;
	if (st.st_size <= MAX_SMALL || !table.header.e_shnum)
		return copy_bytes(copy, 0, (uint64_t)st.st_size);
	is_copied = table.header.e_shnum <= MAX_SECTIONS && copy_parts(copy, &table);
	free(table.sections);
	free(table.names);
	return is_copied;
}

int frames_copy(int fd, uint64_t *ret_bytes)
{
	_cleanup_free_ struct copy *copy = malloc(sizeof(*copy));
	_cleanup_close_ int to = memory_file_create("frames");

	if (!copy || to < 0)
		return -1;
	copy->from = fd;
	copy->to = to;
	copy->bytes = 0;
	if (!copy_file(copy))
		return -1;
	*ret_bytes = copy->bytes;
	return steal_fd(to);
}
