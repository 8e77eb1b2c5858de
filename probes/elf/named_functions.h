/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Functions that a user names: by any symbol, or by an offset in the file. */
#ifndef LEAKTOOLS_PROBES_NAMED_FUNCTIONS_H
#define LEAKTOOLS_PROBES_NAMED_FUNCTIONS_H

#include "probes/elf/elf_image.h"

/*
 * Finds the function @name that the file itself defines, static ones included. Of several, a global
 * one is preferred. Returns false if there is none.
 */
bool named_function_find(const struct elf_image *image, const char *name, struct elf_function *ret);

/*
 * Finds the function that begins at @offset of the file. Its size is 0 if no symbol has it. Returns
 * false if the file holds no code there.
 */
bool named_function_at(const struct elf_image *image, uint64_t offset, struct elf_function *ret);

#endif
