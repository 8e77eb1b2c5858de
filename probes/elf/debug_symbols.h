/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The separate debug file of a stripped program. */
#ifndef LEAKTOOLS_PROBES_DEBUG_SYMBOLS_H
#define LEAKTOOLS_PROBES_DEBUG_SYMBOLS_H

#include "probes/elf/elf_image.h"

/*
 * Makes @image, a program without .symtab, use the .symtab of its debug file, if there is one: by
 * build-id in /usr/lib/debug, by .gnu_debuglink there and beside the program. @path opens the
 * program from here, @display is its path as its process sees it. Libraries are left alone: .dynsym
 * has the functions of their allocators.
 */
void debug_symbols_use(struct elf_image *image, const char *path, const char *display);

#endif
