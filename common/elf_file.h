/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Opening files that may be anything, and telling whether they are the ones that are meant. */
#ifndef LEAKTOOLS_COMMON_ELF_FILE_H
#define LEAKTOOLS_COMMON_ELF_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/*
 * Opens a regular file for reading, without blocking on pipes and devices. Returns a descriptor
 * that the caller closes, or -1: not to be had.
 */
int elf_file_open(const char *path, struct stat *ret_stat);

/* What identifies an ELF file. */
struct elf_file_id {
	const uint8_t *build_id;
	size_t build_id_size; /* 0: none known */
	bool has_crc;
	uint32_t crc; /* of its bytes, as in .gnu_debuglink */
};

/*
 * True if the file is the one meant: by its build-id where one is known, by its checksum only where
 * it has no build-id itself.
 */
bool elf_file_is(int fd, const struct elf_file_id *id);

/*
 * True if it is an ELF file and what is compressed in it (MiniDebugInfo, debug sections) fits into
 * memory, which the libraries that expand it do not look at. If not, that is told of the file
 * @name; NULL: it is not told.
 */
bool elf_file_expands_well(int fd, const char *name);

#endif
