/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The segments of a module: which addresses the bytes of its file have. */
#ifndef LEAKTOOLS_UNWIND_MODULE_SEGMENTS_H
#define LEAKTOOLS_UNWIND_MODULE_SEGMENTS_H

#include "unwind/modules/module.h"

#include <gelf.h>

/*
 * Reads the segments, the machine and the class of the module's file. Returns 0, -ENOMEM, or
 * -ENOEXEC if it is neither a program nor a library.
 */
int module_read_segments(struct module *module, Elf *elf);

/*
 * Uses the segments of the module's debug file, open at @fd, if its own file is missing. The debug
 * file has their addresses, but not their offsets. These follow only if there is one segment of
 * code, and it was mapped whole. Returns 0 or -ENOENT.
 */
int module_use_debug_file(struct module *module, int fd);

/*
 * Computes the ELF virtual address of the byte at @file_offset, once the file is found. Returns
 * false if no segment holds it.
 */
bool module_vaddr(const struct module *module, uint64_t file_offset, uint64_t *ret);

/*
 * Computes the bias (process address minus ELF virtual address) of a mapping of code that begins at
 * @start with the file's byte @file_offset. Returns false if no code segment begins there.
 */
bool module_code_bias(const struct module *module, uint64_t start, uint64_t file_offset,
		      uint64_t *ret);

/* The bytes of address space that the segments cover, gaps included. */
uint64_t module_span(const struct module *module);

#endif
