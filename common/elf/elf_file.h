/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Opens files that may be hostile, and checks whether they are the expected ELF files. */
#ifndef LEAKTOOLS_COMMON_ELF_FILE_H
#define LEAKTOOLS_COMMON_ELF_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include <libelf.h>

/*
 * Opens @path for reading if it is a regular file. Nothing else is opened: opening a FIFO may
 * block, opening a device may have effects. Returns a descriptor that the caller closes, and fills
 * in
 * *@ret_stat; or a negative errno: -EISDIR for a directory, -ENOEXEC for other files that are not
 * regular.
 */
int elf_file_open(const char *path, struct stat *ret_stat);

/* The same for the file of @path_fd, which was opened with O_PATH and stays open. */
int elf_file_reopen(int path_fd, struct stat *ret_stat);

/* Who answers for what the file, of which @st was read, may hold. 0: root alone can change it. */
#define ELF_FILE_ANYBODY ((uid_t)-1) /* root's, but others can change it, or no true owner */
uid_t elf_file_owner(int fd, const struct stat *st);

/*
 * False if the owner, as @st says, may be made up: a server of FUSE gives any, also below an
 * overlay that a user has mounted (own_mounts.h).
 */
bool elf_file_has_true_owner(int fd, const struct stat *st);

/*
 * True if nobody can change the file from whom this process must be protected: not others than
 * root, nor than the user whose rights it has, if it has no capabilities besides.
 */
bool elf_file_is_stable(int fd, const struct stat *st);

/* True if its header is that of a program, a library or a debug file: no core file. */
bool elf_file_is_code(int fd);

/*
 * libelf's handle for the file at @fd; close it by elf_end(). NULL if it is not an ELF file, or if
 * its headers would use up memory or time. In a file that is accepted, all that libelf and libdwelf
 * read by themselves (headers, names of sections, notes, debug links) is small and present.
 */
Elf *elf_file_begin(int fd);

/* True if elf_file_begin() accepts the file. */
bool elf_file_is_sane(int fd);

/*
 * True if the file has these bytes and no hole among them. Linkers leave no holes in tables, but a
 * sparse file can claim gigabytes at no cost.
 */
bool elf_file_has_data(int fd, uint64_t offset, uint64_t size);

/* What identifies an ELF file. */
struct elf_file_id {
	const uint8_t *build_id;
	size_t build_id_size; /* 0: unknown */
	bool has_crc;
	uint32_t crc; /* of the whole file, as in .gnu_debuglink */
	/* Larger files that are not root's have no checksum here. 0: any */
	uint64_t max_others_bytes;
};

/*
 * True if the file is the one that @id identifies: by its build-id, or by its checksum if it has no
 * build-id.
 */
bool elf_file_is(int fd, const struct elf_file_id *id);

/*
 * True if the file is an ELF file whose compressed parts (MiniDebugInfo, debug sections) fit into
 * memory when they are expanded. The libraries that expand them do not check this. If not, a
 * warning names the file @name; no warning if @name is NULL.
 */
bool elf_file_expands_well(int fd, const char *name);

/*
 * The bytes of its compressed sections when they are expanded, as they claim. libdw expands all of
 * those with debugging information if it is asked for one.
 */
uint64_t elf_file_expanded_bytes(Elf *elf);

#endif
