/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ELF files that fuzz targets make of their input. */
#ifndef LEAKTOOLS_TEST_FUZZ_ELF_INPUT_H
#define LEAKTOOLS_TEST_FUZZ_ELF_INPUT_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static inline void elf_input_require(bool is_true)
{
	if (!is_true)
		abort();
}

static inline int elf_input_create(void)
{
	int fd = memfd_create("file", MFD_CLOEXEC);

	elf_input_require(fd >= 0);
	return fd;
}

static inline void elf_input_write(int fd, const uint8_t *data, size_t size)
{
	elf_input_require(ftruncate(fd, 0) == 0 &&
			  (!size || pwrite(fd, data, size, 0) == (ssize_t)size));
}

/* The same without sections: the other file may be the debug file of this one. */
static inline void elf_input_write_stripped(int fd, const uint8_t *data, size_t size)
{
	const Elf64_Ehdr none = {0};

	elf_input_write(fd, data, size);
	if (size < sizeof(none))
		return;
	elf_input_require(pwrite(fd, &none.e_shoff, sizeof(none.e_shoff),
				 offsetof(Elf64_Ehdr, e_shoff)) > 0 &&
			  pwrite(fd, &none.e_shnum, sizeof(none.e_shnum),
				 offsetof(Elf64_Ehdr, e_shnum)) > 0 &&
			  pwrite(fd, &none.e_shstrndx, sizeof(none.e_shstrndx),
				 offsetof(Elf64_Ehdr, e_shstrndx)) > 0);
}

#endif
