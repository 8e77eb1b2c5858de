/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Functions by source line, from debugging information. */
#ifndef LEAKTOOLS_PROBES_FUNCTION_LINES_H
#define LEAKTOOLS_PROBES_FUNCTION_LINES_H

#include "probes/elf/elf_image.h"

/*
 * Finds the function that holds line @line of the source file @source, whose leading directories
 * may be missing. The debugging information may be in a separate file, where debuggers look for it.
 * @path opens @image's file from here. Returns false if there is no such function.
 */
bool function_lines_find(const struct elf_image *image, const char *path, const char *source,
			 int line, struct elf_function *ret);

#endif
