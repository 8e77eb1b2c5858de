/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Functions of any name, or none, in an ELF file: those that a user points at. */
#ifndef LEAKTOOLS_PROBES_NAMED_FUNCTIONS_H
#define LEAKTOOLS_PROBES_NAMED_FUNCTIONS_H

#include "probes/elf/elf_image.h"

/*
 * Finds the function @name that the file itself defines, be it a static one; of several, a global
 * one. Returns whether there is one.
 */
bool named_function_find(const struct elf_image *image, const char *name, struct elf_function *ret);

/*
 * Finds the function that begins at @offset of the file. Its size is not known where no symbol
 * tells. Returns false if the file holds no code there.
 */
bool named_function_at(const struct elf_image *image, uint64_t offset, struct elf_function *ret);

#endif
