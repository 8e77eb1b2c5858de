/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Opening files that may be anything, and telling whether they are the ones that are meant. */
#ifndef LEAKTOOLS_COMMON_ELF_FILE_H
#define LEAKTOOLS_COMMON_ELF_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include <libelf.h>

/*
 * Opens @path for reading if it is a regular file. Nothing else is opened: to open a FIFO may
 * block, to open a device may do something. Returns a descriptor that the caller closes, with
 * *@ret_stat filled in, or a negative errno: -EISDIR for a directory, -ENOEXEC for anything else
 * that is no regular file.
 */
int elf_file_open(const char *path, struct stat *ret_stat);

/* The same for what @path_fd, opened with O_PATH, stands for. @path_fd stays open. */
int elf_file_reopen(int path_fd, struct stat *ret_stat);

/*
 * libelf's handle for the file at @fd, or NULL if it is no ELF file, or one whose headers are made
 * to use up memory or time: what libelf and libdwelf read of it on their own (headers, names of
 * sections, notes, debug links) is small and there. End it with elf_end().
 */
Elf *elf_file_begin(int fd);

/* True if elf_file_begin() takes it. */
bool elf_file_is_sane(int fd);

/*
 * True if the file has these bytes, and none of them only as a hole: no linker leaves one in a
 * table, while a file that is all holes claims gigabytes for nothing.
 */
bool elf_file_has_data(int fd, uint64_t offset, uint64_t size);

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
