/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/landing_pads.h"

#include "probes/analysis_limit.h"

#include "common/elf_file.h"

#include <limits.h>
#include <string.h>

#include <dwarf.h>
#include <elfutils/libdw.h>

#define MAX_FRAME_INFO_BYTES (64u << 20)
#define STEPS_OF_AN_ENTRY    100				/* analysis_limit.h's */
#define ENCODING_USED	     (DW_EH_PE_pcrel | DW_EH_PE_sdata4) /* by all compilers */

/* .eh_frame, and the function to look for in it. */
struct frame_info {
	const unsigned char *ident;
	Elf_Data *data;
	uint64_t address; /* data's, as linked */
	uint64_t first, end;
};

/* What the entries that share a CIE have in common. */
struct common_info {
	Dwarf_Off offset; /* in .eh_frame */
	bool is_read, is_understood, has_table;
};

/* True if the program headers name such information: the section's may have been stripped. */
static bool has_frame_header(Elf *elf)
{
	size_t nr;

	if (elf_getphdrnum(elf, &nr) || nr > INT_MAX)
		return true;
	for (int i = 0; i < (int)nr; i++) {
		GElf_Phdr header;

		if (!gelf_getphdr(elf, i, &header) || header.p_type == PT_GNU_EH_FRAME)
			return true;
	}
	return false;
}

/* Finds the section .eh_frame. Returns false if there is none. */
static bool find_section(Elf *elf, int fd, struct frame_info *ret)
{
	Elf_Scn *section = NULL;
	size_t names;

	if (elf_getshdrstrndx(elf, &names))
		return false;
	while ((section = elf_nextscn(elf, section))) {
		GElf_Shdr header;
		const char *name;

		if (!gelf_getshdr(section, &header))
			continue;
		name = elf_strptr(elf, names, header.sh_name);
		if (!name || strcmp(name, ".eh_frame") != 0 || header.sh_type == SHT_NOBITS)
			continue;
		ret->data = header.sh_size <= MAX_FRAME_INFO_BYTES &&
					    elf_file_has_data(fd, header.sh_offset, header.sh_size)
				    ? elf_rawdata(section, NULL)
				    : NULL;
		ret->address = header.sh_addr;
		return true;
	}
	return false;
}

static void read_common(const struct frame_info *info, Dwarf_Off offset, struct common_info *ret)
{
	Dwarf_CFI_Entry entry;
	Dwarf_Off next;
	const char *letters;

	if (ret->is_read && ret->offset == offset)
		return;
	*ret = (struct common_info){.offset = offset, .is_read = true};
	if (dwarf_next_cfi(info->ident, info->data, true, offset, &next, &entry) ||
	    !dwarf_cfi_cie_p(&entry) || entry.cie.augmentation[0] != 'z')
		return;
	letters = entry.cie.augmentation + 1;
	ret->has_table = strchr(letters, 'L') != NULL;
	letters = strchr(letters, 'R');
	/* The encoding of addresses is the last of the data then. */
	ret->is_understood =
		letters && (letters[1] == '\0' || strcmp(letters, "RS") == 0) &&
		entry.cie.augmentation_data && entry.cie.augmentation_data_size > 0 &&
		entry.cie.augmentation_data[entry.cie.augmentation_data_size - 1] == ENCODING_USED;
}

/* True if the code of @entry is some of the function's. */
static bool is_functions(const struct frame_info *info, const Dwarf_FDE *entry)
{
	const uint8_t *data = info->data->d_buf;
	int32_t distance;
	uint32_t size_bytes;
	uint64_t first;

	if (entry->end - entry->start < (ptrdiff_t)(sizeof(distance) + sizeof(size_bytes)))
		return true;
	memcpy(&distance, entry->start, sizeof(distance));
	memcpy(&size_bytes, entry->start + sizeof(distance), sizeof(size_bytes));
	first = info->address + (uint64_t)(entry->start - data) + (uint64_t)(int64_t)distance;
	return first < info->end && info->first < first + size_bytes;
}

static bool search(const struct frame_info *info)
{
	struct common_info common = {0};
	Dwarf_Off offset = 0, next;
	Dwarf_CFI_Entry entry;
	int result;

	while ((result = dwarf_next_cfi(info->ident, info->data, true, offset, &next, &entry)) ==
	       0) {
		if (analysis_limit_is_reached(STEPS_OF_AN_ENTRY))
			return true;
		offset = next;
		if (dwarf_cfi_cie_p(&entry))
			continue;
		read_common(info, entry.fde.CIE_pointer, &common);
		if (!common.is_understood || (common.has_table && is_functions(info, &entry.fde)))
			return true;
	}
	return result < 0;
}

bool landing_pads_may_exist(const struct elf_image *image, const struct elf_function *function)
{
	struct frame_info info = {0};

	if (!find_section(image->elf, image->fd, &info))
		return has_frame_header(image->elf);
	info.ident = (const unsigned char *)elf_getident(image->elf, NULL);
	if (!info.ident || !info.data || !info.data->d_buf ||
	    !elf_image_address(image, function->offset, &info.first))
		return true;
	info.end = info.first + function->size_bytes;
	return search(&info);
}
