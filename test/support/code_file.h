/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Makes ELF files of a few instructions, for tests of code that reads code. Any failure fails the
 * test.
 */
#ifndef LEAKTOOLS_TEST_SUPPORT_CODE_FILE_H
#define LEAKTOOLS_TEST_SUPPORT_CODE_FILE_H

#include "probes/elf/elf_image.h"

#include <stddef.h>
#include <stdint.h>

/* Offsets in the file and addresses: of the code, and of added sections. */
#define CODE_FILE_OFFSET      0x1000
#define CODE_FILE_DATA_OFFSET 0x3000

/* In memory, with a single segment, of code. */
struct code_file {
	int fd;
	struct elf_image image;
};

/* Free with code_file_deinit(). */
void code_file_init(struct code_file *ret, const uint8_t *code, size_t size_bytes);
void code_file_deinit(struct code_file *file);

/* Adds a section of @type with @data. In a table of symbols, all are named "inner". */
void code_file_add_section(struct code_file *file, const char *name, uint32_t type,
			   const void *data, size_t size_bytes);

#endif
