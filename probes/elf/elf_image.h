/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An ELF file: where its functions are, and which build it is. elf_symbols.c reads its symbols.
 *
 * The file is hostile: it may hold anything, and change while it is read. It is never mapped with
 * mmap(), since truncating it would then kill this process. Tables have a size limit, and every
 * index is checked.
 */
#ifndef LEAKTOOLS_PROBES_ELF_IMAGE_H
#define LEAKTOOLS_PROBES_ELF_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <gelf.h>

/* The symbol tables that are searched. */
enum elf_table {
	ELF_DYNSYM,
	ELF_SYMTAB,
	ELF_DEBUG_SYMTAB,
	ELF_NR_TABLES,
};

/* The string table of a symbol table, read as a whole when it is first needed. */
struct elf_strings {
	bool is_read;
	char *bytes; /* NULL: it cannot be used */
	uint64_t size_bytes;
};

struct elf_image {
	int fd;
	bool owns_fd; /* elf_image_deinit() closes it */
	Elf *elf;
	GElf_Phdr *program_headers;
	size_t nr_program_headers;
	int debug_fd; /* the separate debug file, if one is used, or -1 */
	Elf *debug;
	struct elf_strings *strings; /* by enum elf_table */
	uint64_t file_size_bytes;
	bool is_native; /* of this machine's architecture: probes can be placed in it */
	bool is_x86_64; /* its code can be decoded */
};

/* A function that the file defines. */
struct elf_function {
	bool is_found;
	uint64_t offset;     /* in the file */
	uint64_t size_bytes; /* by its symbol; 0: not known. Within the file. */
	bool is_old;	     /* see struct elf_symbol */
};

/* A symbol of one of the file's tables. */
struct elf_symbol {
	const char *name;    /* in the string table */
	uint64_t address;    /* as linked; of an import: 0 or of its PLT stub */
	uint64_t size_bytes; /* 0: not known */
	int type;	     /* STT_* */
	bool is_local;
	bool is_import; /* undefined in this file */
	bool in_dynsym;
	bool is_old; /* an old version, for programs linked long ago: "f@V1", not "f@@V2" */
};

/* Called for each symbol. Returns false to end the search. */
typedef bool elf_symbol_visit(void *context, const struct elf_symbol *symbol);

/*
 * Opens the ELF file at @fd, which must stay open. Returns 0; -ENOEXEC if it is not an ELF file or
 * is truncated; or another negative errno. Reports nothing. Release with elf_image_deinit().
 */
int elf_image_init(struct elf_image *ret, int fd);

/* The same for the regular file at @path, which the image keeps open. */
int elf_image_open(struct elf_image *ret, const char *path);

/*
 * Also uses the .symtab of the debug file at @fd. Returns true, and then the image owns @fd; false
 * if that is no 64-bit ELF file.
 */
bool elf_image_use_debug_file(struct elf_image *image, int fd);
void elf_image_deinit(struct elf_image *image);

/*
 * Finds the functions of @names: global symbols that the file itself defines, from .dynsym and
 * .symtab, in their newest version; in a static program local ones too. Imported functions (PLT
 * stubs) are not found, nor indirect ones (STT_GNU_IFUNC), whose symbol is only that of the
 * resolver.
 */
void elf_image_find_functions(const struct elf_image *image, const char *const *names, size_t nr,
			      struct elf_function *ret);

/* Finds where in the file the code at @address of the image is. Returns false if there is none. */
bool elf_image_locate_code(const struct elf_image *image, uint64_t address, uint64_t *ret_offset);

/*
 * Visits the symbols of .dynsym, of .symtab, and of the debug file. Many are visited more than
 * once.
 */
void elf_image_visit_symbols(const struct elf_image *image, elf_symbol_visit *visit, void *context);

/* True if the file has a .symtab of its own. */
bool elf_image_has_symtab(const struct elf_image *image);

/* Finds the code of @symbol. Returns false if the file holds no code there. */
bool elf_image_locate(const struct elf_image *image, const struct elf_symbol *symbol,
		      struct elf_function *ret);

/* Finds the address, as linked, of the code at @offset. Returns false if there is none. */
bool elf_image_address(const struct elf_image *image, uint64_t offset, uint64_t *ret);

/*
 * Copies the name of symbol @nr of the table that is section @section. Returns false if there is
 * none, or if it does not fit.
 */
bool elf_image_symbol_name(const struct elf_image *image, size_t section, uint64_t nr, char *ret,
			   size_t size);

/* True for a program that loads no library: neither PT_INTERP nor DT_NEEDED. */
bool elf_image_is_static(const struct elf_image *image);

/* True for a dynamic loader: it exports _r_debug, by which debuggers find the loaded libraries. */
bool elf_image_is_loader(const struct elf_image *image);

/*
 * The path of the loader that the program asks for (PT_INTERP), or NULL if there is none, as in
 * static programs and libraries. The caller frees it.
 */
char *elf_image_interpreter(const struct elf_image *image);

/*
 * The first four bytes of the build-id, as one big-endian number, so that "%08x" prints its first
 * eight digits. A file without a build-id gets a hash of its code instead. Returns 0 or a negative
 * errno.
 */
int elf_image_build_hash(const struct elf_image *image, uint32_t *ret);

/*
 * Finds where in the file its @nth segment of code is, cut to what the file holds. Returns false if
 * there are no more.
 */
bool elf_image_code_segment(const struct elf_image *image, size_t nth, uint64_t *ret_offset,
			    uint64_t *ret_size_bytes);

/* Reads exactly @size bytes at @offset of the file. Returns 0 or a negative errno. */
int elf_image_read(const struct elf_image *image, uint64_t offset, void *buffer, size_t size);

/*
 * Reads what the file holds of the @max bytes at @address of the image, from one segment. Returns
 * the number of bytes; 0 if there are none or they cannot be read.
 */
size_t elf_image_read_address(const struct elf_image *image, uint64_t address, void *buffer,
			      size_t max);

#endif
