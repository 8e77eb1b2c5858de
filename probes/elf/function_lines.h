/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Functions by source line, from debugging information. */
#ifndef LEAKTOOLS_PROBES_FUNCTION_LINES_H
#define LEAKTOOLS_PROBES_FUNCTION_LINES_H

#include "probes/elf/debug_symbols.h"
#include "probes/elf/elf_image.h"

/* True if @image itself has debugging information. */
bool function_lines_are_in(const struct elf_image *image);

/*
 * Finds the function that holds line @line of the source file @source, whose leading directories
 * may be missing. @debug: the separate file of the debugging information, if that is not in
 * @image; or NULL. Returns false if there is no such function.
 */
bool function_lines_find(const struct elf_image *image, const struct debug_symbols_files *debug,
			 const char *source, int line, struct elf_function *ret);

#endif
