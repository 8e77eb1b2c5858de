/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ELF files made of some instructions, for what reads code. Whatever fails, fails the test.
 */
#ifndef LEAKTOOLS_TEST_SUPPORT_CODE_FILE_H
#define LEAKTOOLS_TEST_SUPPORT_CODE_FILE_H

#include "probes/elf/elf_image.h"

#include <stddef.h>
#include <stdint.h>

/* In the file, and the addresses: of the code, and of what else was added. */
#define CODE_FILE_OFFSET      0x1000
#define CODE_FILE_DATA_OFFSET 0x3000

/* In memory, with nothing but one segment of code. */
struct code_file {
	int fd;
	struct elf_image image;
};

/* Release with code_file_deinit(). */
void code_file_init(struct code_file *ret, const uint8_t *code, size_t size_bytes);
void code_file_deinit(struct code_file *file);

/* Adds a section of @type with @data; of symbols, if it is a table of these, all named "inner". */
void code_file_add_section(struct code_file *file, const char *name, uint32_t type,
			   const void *data, size_t size_bytes);

#endif
