/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "test/support/code_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#define NAMES_OFFSET	0x4000
#define SECTIONS_OFFSET 0x5000
#define NR_SECTIONS	3

static void write_at(int fd, const void *data, size_t size, off_t offset)
{
	assert_int_equal(pwrite(fd, data, size, offset), (ssize_t)size);
}

static void read_image(struct code_file *file)
{
	assert_int_equal(elf_image_init(&file->image, file->fd), 0);
	assert_true(file->image.is_native);
}

void code_file_init(struct code_file *ret, const uint8_t *code, size_t size_bytes)
{
	Elf64_Ehdr header = {
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			    EV_CURRENT},
		.e_type = ET_DYN,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_phoff = sizeof(header),
		.e_ehsize = sizeof(header),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 1,
		.e_shentsize = sizeof(Elf64_Shdr),
	};
	Elf64_Phdr segment = {
		.p_type = PT_LOAD,
		.p_flags = PF_R | PF_X,
		.p_offset = CODE_FILE_OFFSET,
		.p_vaddr = CODE_FILE_OFFSET,
		.p_filesz = size_bytes,
		.p_memsz = size_bytes,
	};

	ret->fd = memfd_create("code", MFD_CLOEXEC);
	assert_true(ret->fd >= 0);
	write_at(ret->fd, &header, sizeof(header), 0);
	write_at(ret->fd, &segment, sizeof(segment), sizeof(header));
	write_at(ret->fd, code, size_bytes, CODE_FILE_OFFSET);
	read_image(ret);
}

void code_file_deinit(struct code_file *file)
{
	elf_image_deinit(&file->image);
	close(file->fd);
}

void code_file_add_section(struct code_file *file, const char *name, uint32_t type,
			   const void *data, size_t size_bytes)
{
	char names[64] = "\0inner\0";
	size_t name_at = sizeof("\0inner");
	Elf64_Shdr sections[NR_SECTIONS] = {
		[1] = {.sh_name = (uint32_t)name_at,
		       .sh_type = type,
		       .sh_addr = CODE_FILE_DATA_OFFSET,
		       .sh_offset = CODE_FILE_DATA_OFFSET,
		       .sh_size = size_bytes,
		       .sh_link = 2,
		       .sh_entsize = type == SHT_SYMTAB ? sizeof(Elf64_Sym) : 0,
		       .sh_addralign = 8},
		[2] = {.sh_type = SHT_STRTAB,
		       .sh_offset = NAMES_OFFSET,
		       .sh_size = sizeof(names),
		       .sh_addralign = 1},
	};
	Elf64_Off offset = SECTIONS_OFFSET;
	Elf64_Half numbers[2] = {NR_SECTIONS,
				 2}; /* number of headers; index of the section names */

	elf_image_deinit(&file->image);
	snprintf(names + name_at, sizeof(names) - name_at, "%s", name);
	write_at(file->fd, data, size_bytes, CODE_FILE_DATA_OFFSET);
	write_at(file->fd, names, sizeof(names), NAMES_OFFSET);
	write_at(file->fd, sections, sizeof(sections), SECTIONS_OFFSET);
	write_at(file->fd, &offset, sizeof(offset), offsetof(Elf64_Ehdr, e_shoff));
	write_at(file->fd, numbers, sizeof(numbers), offsetof(Elf64_Ehdr, e_shnum));
	read_image(file);
}
