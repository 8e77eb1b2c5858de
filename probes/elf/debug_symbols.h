/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The separate debug file of a stripped program: by build-id in /usr/lib/debug, by .gnu_debuglink
 * there and beside the program. Libraries need none: .dynsym has the functions of their allocators.
 *
 * Whoever reads the program may have no right to open files. So the steps are apart: what is wanted
 * (reads the program), opening (reads nothing), trying (reads both).
 */
#ifndef LEAKTOOLS_PROBES_DEBUG_SYMBOLS_H
#define LEAKTOOLS_PROBES_DEBUG_SYMBOLS_H

#include "probes/elf/elf_image.h"

#define DEBUG_SYMBOLS_MAX_ID	64
#define DEBUG_SYMBOLS_MAX_LINK	256
#define DEBUG_SYMBOLS_MAX_FILES 6 /* one by build-id; by link, one in each directory */

/* What a program says of its debug file. */
struct debug_symbols_id {
	uint8_t build_id[DEBUG_SYMBOLS_MAX_ID];
	size_t build_id_size;		   /* 0: none */
	char link[DEBUG_SYMBOLS_MAX_LINK]; /* "": none */
	uint32_t crc;			   /* of the linked file */
};

/* The files that may be it. */
struct debug_symbols_files {
	struct debug_symbols_id id;
	int fds[DEBUG_SYMBOLS_MAX_FILES];
	size_t nr;
};

/* True if @image is a program without .symtab that names a debug file. */
bool debug_symbols_are_wanted(const struct elf_image *image, struct debug_symbols_id *ret);
/* True if @image names a debug file. */
bool debug_symbols_id(const struct elf_image *image, struct debug_symbols_id *ret);

/*
 * Opens the files: only those of code that nobody could write who cannot write the program, which
 * @fd has. @path opens it from here, @display is its path as its process sees it. Release with
 * debug_symbols_files_deinit().
 */
void debug_symbols_open(const struct debug_symbols_id *id, int fd, const char *path,
			const char *display, struct debug_symbols_files *ret);
void debug_symbols_files_deinit(struct debug_symbols_files *files);

/*
 * Opens the one of @files, from the @first on, that is the wanted debug file. Returns its number,
 * with a descriptor that the caller closes, or files->nr.
 */
size_t debug_symbols_find(const struct debug_symbols_files *files, size_t first, int *ret_fd);

/* Makes @image use the .symtab of the file that it names, if that is among @files. */
void debug_symbols_try(struct elf_image *image, const struct debug_symbols_files *files);

/* All three steps. */
void debug_symbols_use(struct elf_image *image, const char *path, const char *display);

#endif
