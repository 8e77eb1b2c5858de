/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Functions by source line, as debugging information knows them. */
#ifndef LEAKTOOLS_PROBES_FUNCTION_LINES_H
#define LEAKTOOLS_PROBES_FUNCTION_LINES_H

#include "probes/elf/elf_image.h"

/*
 * Finds the function that holds line @line of the source file @source, which may be given without
 * its leading directories. The debugging information may be in a file of its own, as debuggers find
 * it. @path: of @image, as it opens here. Returns whether there is one.
 */
bool function_lines_find(const struct elf_image *image, const char *path, const char *source,
			 int line, struct elf_function *ret);

#endif
