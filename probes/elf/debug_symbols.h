/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The symbols that a stripped program has in a separate debug file. */
#ifndef LEAKTOOLS_PROBES_DEBUG_SYMBOLS_H
#define LEAKTOOLS_PROBES_DEBUG_SYMBOLS_H

#include "probes/elf/elf_image.h"

/*
 * Has @image, a program without .symtab, use its debug file's, if there is one: by build-id in
 * /usr/lib/debug, by .gnu_debuglink there and beside it. @path opens the program from here,
 * @display is its own path. An allocator in a library has its functions in .dynsym: libraries are
 * left alone.
 */
void debug_symbols_use(struct elf_image *image, const char *path, const char *display);

#endif
