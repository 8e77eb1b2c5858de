/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/modules/frames_copy.h"

#include "common/elf/memory_file.h"
#include "common/scope.h"

#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHUNK	     (64u << 10)
#define MAX_SMALL    (64u << 10) /* of a section, or a file */
#define MAX_NAMES    (1u << 20)	 /* of sections, as in elf_file.c */
#define MAX_SECTIONS 4096	 /* as in elf_file.c */
#define BLOCK	     512	 /* of st_blocks */

struct copy {
	int from, to;
	int err; /* why it cannot be made, a negative errno */
	uint64_t bytes;
	uint8_t chunk[CHUNK];
};

struct section_table {
	Elf64_Ehdr header;
	Elf64_Phdr *segments;
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
	if (size > FRAMES_COPY_MAX_BYTES - copy->bytes) {
		copy->err = -E2BIG;
		return false;
	}
	copy->bytes += size;
	errno = 0;
	while (size > 0) {
		ssize_t nr =
			pread(copy->from, copy->chunk, size < CHUNK ? size : CHUNK, (off_t)offset);

		if (nr == 0)
			return true;
		if (nr < 0 || pwrite(copy->to, copy->chunk, (size_t)nr, (off_t)offset) != nr) {
			copy->err = errno ? -errno : -ENOSPC;
			return false;
		}
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
	/* libelf would copy a table that is not aligned once more. */
	if (section->sh_type == SHT_SYMTAB)
		return program != OTHER && section->sh_offset % sizeof(Elf64_Addr) == 0;
	if (section->sh_type == SHT_STRTAB)
		return program != OTHER;
	return program == STATIC && section->sh_flags & SHF_EXECINSTR;
}

/* Static programs need none, nor does musl, which is its own loader. */
static bool needs_library(struct copy *copy, const Elf64_Shdr *dynamic)
{
	ssize_t nr =
		pread(copy->from, copy->chunk, dynamic->sh_size < CHUNK ? dynamic->sh_size : CHUNK,
		      (off_t)dynamic->sh_offset);
	Elf64_Dyn entry = {.d_tag = DT_NULL};

	for (ssize_t at = 0; at + (ssize_t)sizeof(entry) <= nr; at += (ssize_t)sizeof(entry)) {
		memcpy(&entry, copy->chunk + at, sizeof(entry));
		if (entry.d_tag == DT_NEEDED)
			return true;
	}
	return false;
}

/* Some linkers give a library an entry, too. */
static enum program find_program(struct copy *copy, const struct section_table *table)
{
	enum program program = table->header.e_entry ? STATIC : OTHER;

	for (size_t i = 0; i < table->header.e_shnum; i++) {
		const char *name = name_of(table, &table->sections[i]);

		if (strcmp(name, ".gopclntab") == 0)
			return GO;
		if (strcmp(name, ".interp") == 0 ||
		    (strcmp(name, ".dynamic") == 0 && needs_library(copy, &table->sections[i])))
			program = OTHER;
	}
	return program;
}

/* Notes are read as a whole, and linked files have few: what exceeds MAX_SMALL is left out. */
static bool has_room_for_notes(uint64_t *notes, uint64_t size)
{
	if (size > MAX_SMALL - *notes)
		return false;
	*notes += size;
	return true;
}

/*
 * Copies call frame information first, then what there is room for. What is not copied has no
 * contents for libelf, either: it would read zeros, each page of which takes memory, and convert
 * them. It converts no bytes.
 */
static bool copy_sections(struct copy *copy, struct section_table *table)
{
	Elf64_Shdr *end = table->sections + table->header.e_shnum;
	enum program program = find_program(copy, table);
	uint64_t notes = 0;

	for (Elf64_Shdr *section = table->sections; section < end; section++) {
		if (section->sh_type == SHT_NOBITS || !is_frames(name_of(table, section)))
			continue;
		if (!copy_bytes(copy, section->sh_offset, section->sh_size))
			return false;
		section->sh_type = SHT_PROGBITS;
	}
	for (Elf64_Shdr *section = table->sections; section < end; section++) {
		const char *name = name_of(table, section);

		/* The names have been copied. */
		if (section->sh_type == SHT_NOBITS || is_frames(name) ||
		    section == table->sections + table->header.e_shstrndx)
			continue;
		if (section->sh_size > FRAMES_COPY_MAX_BYTES - copy->bytes ||
		    !is_useful(section, name, program) ||
		    (section->sh_type == SHT_NOTE && !has_room_for_notes(&notes, section->sh_size)))
			section->sh_type = SHT_NOBITS;
		else if (!copy_bytes(copy, section->sh_offset, section->sh_size))
			return false;
	}
	return true;
}

/* Notes and call frame information are found by sections, and may not have been copied. */
static void leave_out_segments(struct section_table *table)
{
	uint64_t notes = 0;

	for (size_t i = 0; i < table->header.e_phnum; i++) {
		Elf64_Phdr *segment = &table->segments[i];

		if (segment->p_type == PT_GNU_EH_FRAME ||
		    (segment->p_type == PT_NOTE && !has_room_for_notes(&notes, segment->p_filesz)))
			segment->p_type = PT_NULL;
	}
}

static bool write_table(struct copy *copy, uint64_t offset, const void *table, size_t size)
{
	return pwrite(copy->to, table, size, (off_t)offset) == (ssize_t)size;
}

/* The tables may be where a section is. Its bytes are not what was looked at. */
static bool write_tables(struct copy *copy, const struct section_table *table)
{
	const Elf64_Ehdr *header = &table->header;
	size_t segments_size = header->e_phnum * sizeof(Elf64_Phdr);
	size_t sections_size = header->e_shnum * sizeof(Elf64_Shdr);

	return write_table(copy, header->e_shoff, table->sections, sections_size) &&
	       write_table(copy, header->e_phoff, table->segments, segments_size) &&
	       write_table(copy, 0, header, sizeof(*header));
}

/* No linker writes one of them into another one. */
static bool are_apart(const Elf64_Ehdr *header)
{
	uint64_t segments_end = header->e_phoff + header->e_phnum * sizeof(Elf64_Phdr);
	uint64_t sections_end = header->e_shoff + header->e_shnum * sizeof(Elf64_Shdr);

	if (header->e_shoff < sizeof(*header))
		return false;
	return !header->e_phnum ||
	       (header->e_phoff >= sizeof(*header) &&
		(segments_end <= header->e_shoff || sections_end <= header->e_phoff));
}

static bool copy_parts(struct copy *copy, struct section_table *table)
{
	const Elf64_Ehdr *header = &table->header;
	Elf64_Shdr *names;

	if (!are_apart(header) || header->e_shstrndx >= header->e_shnum)
		return false;
	table->segments =
		copy_and_read(copy, header->e_phoff, header->e_phnum * sizeof(Elf64_Phdr));
	table->sections =
		copy_and_read(copy, header->e_shoff, header->e_shnum * sizeof(Elf64_Shdr));
	if (!table->segments || !table->sections)
		return false;
	names = &table->sections[header->e_shstrndx];
	names->sh_type = SHT_STRTAB;
	if (names->sh_size <= MAX_NAMES)
		table->names = copy_and_read(copy, names->sh_offset, names->sh_size);
	table->names_size = names->sh_size;
	if (!table->names || !copy_sections(copy, table))
		return false;
	leave_out_segments(table);
	return write_tables(copy, table);
}

/*
 * Of another class, it is not unwound. In another byte order, libelf converts it as a whole.
 * libdwfl would relocate an ET_REL, which no process maps.
 */
static bool is_known_kind(const Elf64_Ehdr *header)
{
	return memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 &&
	       header->e_ident[EI_CLASS] == ELFCLASS64 && header->e_ident[EI_DATA] == ELFDATA2LSB &&
	       (header->e_type == ET_EXEC || header->e_type == ET_DYN);
}

static bool copy_file(struct copy *copy)
{
	struct section_table table = {.sections = NULL};
	struct stat st;
	bool is_copied;

	if (fstat(copy->from, &st) || !copy_bytes(copy, 0, sizeof(table.header)) ||
	    pread(copy->to, &table.header, sizeof(table.header), 0) != sizeof(table.header) ||
	    !is_known_kind(&table.header))
		return false;
	/* Its owner may have changed the header, which has been looked at. */
	if (st.st_size <= MAX_SMALL || !table.header.e_shnum)
		return copy_bytes(copy, 0, (uint64_t)st.st_size) &&
		       write_table(copy, 0, &table.header, sizeof(table.header));
	is_copied = table.header.e_shnum <= MAX_SECTIONS && copy_parts(copy, &table);
	free(table.segments);
	free(table.sections);
	free(table.names);
	return is_copied;
}

int frames_copy(int fd, uint64_t *ret_bytes)
{
	_cleanup_free_ struct copy *copy = malloc(sizeof(*copy));
	_cleanup_close_ int to = memory_file_create("frames");
	struct stat st;

	if (!copy)
		return -ENOMEM;
	if (to < 0)
		return to;
	copy->from = fd;
	copy->to = to;
	copy->err = -ENOEXEC;
	copy->bytes = 0;
	if (!copy_file(copy) || fstat(to, &st))
		return copy->err;
	/* A page for a byte, or bytes that the file did not have yet */
	*ret_bytes = (uint64_t)st.st_blocks * BLOCK;
	if (*ret_bytes < copy->bytes)
		*ret_bytes = copy->bytes;
	return steal_fd(to);
}
