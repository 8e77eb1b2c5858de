/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/elf/frame_table.h"

#include "probes/elf/analysis_limit.h"

#include "common/elf/elf_file.h"
#include "common/elf/elf_section.h"
#include "common/partition_point.h"
#include "common/scope.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <dwarf.h>
#include <elfutils/libdw.h>

#define MAX_FRAME_INFO_BYTES (64u << 20)
#define MAX_ENTRIES	     (1u << 20)
#define STEPS_OF_AN_ENTRY    100   /* for analysis_limit.h */
#define MAX_PADS_BYTES	     65536 /* of the call-site table of one piece of code */
#define ENCODING_USED	     (DW_EH_PE_pcrel | DW_EH_PE_sdata4) /* what all compilers use */

/* .eh_frame. */
struct frame_info {
	const unsigned char *ident;
	Elf_Data *data;
	uint64_t address; /* of @data, as linked */
};

/* What the entries that share a CIE have in common. */
struct common_info {
	Dwarf_Off offset; /* in .eh_frame */
	bool is_read, is_understood;
	uint8_t pads_encoding; /* DW_EH_PE_omit: the entries have no LSDA */
};

/* Bytes that are read in order, and their address. */
struct cursor {
	const uint8_t *at, *end;
	uint64_t address; /* of @at */
};

static bool read_bytes(struct cursor *cursor, void *to, size_t size_bytes)
{
	if ((size_t)(cursor->end - cursor->at) < size_bytes)
		return false;
	memcpy(to, cursor->at, size_bytes);
	cursor->at += size_bytes;
	cursor->address += size_bytes;
	return true;
}

static bool read_uleb128(struct cursor *cursor, uint64_t *ret)
{
	uint8_t byte = 0x80;

	*ret = 0;
	for (unsigned int shift = 0; byte & 0x80; shift += 7) {
		if (shift > 56 || !read_bytes(cursor, &byte, 1))
			return false;
		*ret |= (uint64_t)(byte & 0x7f) << shift;
	}
	return true;
}

/* Reads a value in one of the encodings (DW_EH_PE_*) that compilers use. */
static bool read_encoded(struct cursor *cursor, uint8_t encoding, uint64_t *ret)
{
	uint64_t base = (encoding & 0x70) == DW_EH_PE_pcrel ? cursor->address : 0;
	uint32_t half;

	if ((encoding & 0x70) != DW_EH_PE_pcrel && (encoding & 0x70) != DW_EH_PE_absptr)
		return false;
	switch (encoding & 0x0f) {
	case DW_EH_PE_uleb128:
		if (!read_uleb128(cursor, ret))
			return false;
		break;
	case DW_EH_PE_udata4:
	case DW_EH_PE_sdata4:
		if (!read_bytes(cursor, &half, sizeof(half)))
			return false;
		*ret = (encoding & 0x0f) == DW_EH_PE_sdata4 ? (uint64_t)(int64_t)(int32_t)half
							    : half;
		break;
	case DW_EH_PE_absptr:
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8:
		if (!read_bytes(cursor, ret, sizeof(*ret)))
			return false;
		break;
	default:
		return false;
	}
	*ret = *ret ? *ret + base : 0;
	return true;
}

/* True if the program headers name such information. Its section may have been stripped. */
static bool has_frame_header(const struct elf_image *image)
{
	for (size_t i = 0; i < image->nr_program_headers; i++)
		if (image->program_headers[i].p_type == PT_GNU_EH_FRAME)
			return true;
	return false;
}

/* Finds the section .eh_frame. Returns false if there is none. */
static bool find_section(Elf *elf, int fd, struct frame_info *ret)
{
	struct elf_section section = {0};

	while (elf_section_next(elf, &section)) {
		const GElf_Shdr *header = &section.header;

		if (!section.name || strcmp(section.name, ".eh_frame") != 0 ||
		    header->sh_type == SHT_NOBITS)
			continue;
		ret->data =
			header->sh_size <= MAX_FRAME_INFO_BYTES &&
					elf_file_has_data(fd, header->sh_offset, header->sh_size)
				? elf_rawdata(section.handle, NULL)
				: NULL;
		ret->address = header->sh_addr;
		return true;
	}
	return false;
}

/* Reads what the letters of an augmentation stand for, in their order. */
static bool read_augmentation(const Dwarf_CIE *cie, struct common_info *ret)
{
	struct cursor data = {.at = cie->augmentation_data,
			      .end = cie->augmentation_data + cie->augmentation_data_size};
	uint8_t encoding = DW_EH_PE_absptr;
	uint64_t personality;

	ret->pads_encoding = DW_EH_PE_omit;
	if (cie->augmentation[0] != 'z' || !data.at)
		return false;
	for (const char *letter = cie->augmentation + 1; *letter; letter++) {
		uint8_t byte;

		switch (*letter) {
		case 'P':
			if (!read_bytes(&data, &byte, 1) ||
			    !read_encoded(&data, byte & ~DW_EH_PE_indirect, &personality))
				return false;
			break;
		case 'L':
			if (!read_bytes(&data, &ret->pads_encoding, 1))
				return false;
			break;
		case 'R':
			if (!read_bytes(&data, &encoding, 1))
				return false;
			break;
		case 'S':
			break;
		default:
			return false;
		}
	}
	return encoding == ENCODING_USED;
}

static void read_common(const struct frame_info *info, Dwarf_Off offset, struct common_info *ret)
{
	Dwarf_CFI_Entry entry;
	Dwarf_Off next;

	if (ret->is_read && ret->offset == offset)
		return;
	*ret = (struct common_info){.offset = offset, .is_read = true};
	if (dwarf_next_cfi(info->ident, info->data, true, offset, &next, &entry) == 0 &&
	    dwarf_cfi_cie_p(&entry))
		ret->is_understood = read_augmentation(&entry.cie, ret);
}

/* Reads an entry of .eh_frame: where the code begins, its size, and data as the CIE says. */
static bool read_entry(const struct frame_info *info, const struct common_info *common,
		       const Dwarf_FDE *fde, struct frame_entry *ret)
{
	struct cursor cursor = {
		.at = fde->start,
		.end = fde->end,
		.address =
			info->address + (uint64_t)(fde->start - (const uint8_t *)info->data->d_buf),
	};
	uint64_t data_bytes;
	uint32_t size_bytes;

	*ret = (struct frame_entry){.pads_encoding = common->pads_encoding};
	if (!common->is_understood || !read_encoded(&cursor, ENCODING_USED, &ret->first) ||
	    !read_bytes(&cursor, &size_bytes, sizeof(size_bytes)) ||
	    !read_uleb128(&cursor, &data_bytes))
		return false;
	ret->end = ret->first + size_bytes;
	if (ret->end < ret->first)
		return false;
	return common->pads_encoding == DW_EH_PE_omit || data_bytes == 0 ||
	       read_encoded(&cursor, common->pads_encoding, &ret->pads);
}

static int add_entry(struct frame_table *table, const struct frame_entry *entry, size_t *capacity)
{
	struct frame_entry *grown;

	if (table->nr == MAX_ENTRIES)
		return -E2BIG;
	if (table->nr == *capacity) {
		*capacity = *capacity ? 2 * *capacity : 256;
		grown = reallocarray(table->entries, *capacity, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		table->entries = grown;
	}
	table->entries[table->nr++] = *entry;
	return 0;
}

static int read_entries(struct frame_table *table, const struct frame_info *info)
{
	struct common_info common = {0};
	struct frame_entry entry;
	Dwarf_CFI_Entry found;
	Dwarf_Off offset = 0, next;
	size_t capacity = 0;
	int result, err = 0;

	while ((result = dwarf_next_cfi(info->ident, info->data, true, offset, &next, &found)) ==
		       0 &&
	       !err) {
		offset = next;
		if (analysis_limit_is_reached(STEPS_OF_AN_ENTRY))
			return -ENOTSUP;
		if (dwarf_cfi_cie_p(&found))
			continue;
		read_common(info, found.fde.CIE_pointer, &common);
		if (!read_entry(info, &common, &found.fde, &entry))
			return -ENOTSUP;
		err = add_entry(table, &entry, &capacity);
	}
	return err ? err : result < 0 ? -ENOTSUP : 0;
}

static int compare_entries(const void *a, const void *b)
{
	const struct frame_entry *x = a, *y = b;

	return x->first < y->first ? -1 : x->first > y->first;
}

int frame_table_init(struct frame_table *ret, const struct elf_image *image)
{
	struct frame_info info = {0};
	int err;

	*ret = (struct frame_table){0};
	if (!find_section(image->elf, image->fd, &info))
		return has_frame_header(image) ? -ENOTSUP : 0;
	info.ident = (const unsigned char *)elf_getident(image->elf, NULL);
	if (!info.ident || !info.data || !info.data->d_buf)
		return -ENOTSUP;
	err = read_entries(ret, &info);
	if (err) {
		frame_table_deinit(ret);
		return err;
	}
	if (ret->nr > 1)
		qsort(ret->entries, ret->nr, sizeof(*ret->entries), compare_entries);
	return 0;
}

void frame_table_deinit(struct frame_table *table)
{
	free(table->entries);
	*table = (struct frame_table){0};
}

const struct frame_entry *frame_table_find(const struct frame_table *table, uint64_t address)
{
	/* The entries that begin at or before @address. */
	size_t nr = partition_point(table->nr, i, table->entries[i].first <= address);

	return nr > 0 && address < table->entries[nr - 1].end ? &table->entries[nr - 1] : NULL;
}

bool frame_table_has_pads(const struct frame_table *table, uint64_t first, uint64_t end)
{
	for (size_t i = 0; i < table->nr; i++)
		if (table->entries[i].pads && table->entries[i].first < end &&
		    first < table->entries[i].end)
			return true;
	return false;
}

/*
 * Reads the head of an LSDA: the base of the landing pads, and the encoding of the call-site table
 * that follows. The format is that of gcc's libgcc/unwind-c.c and
 * libstdc++-v3/libsupc++/eh_personality.cc, which all languages use on x86-64 Linux.
 */
static bool read_head(struct cursor *cursor, uint64_t *base, uint8_t *encoding)
{
	uint64_t ignored, size_bytes;
	uint8_t byte;

	if (!read_bytes(cursor, &byte, 1) ||
	    (byte != DW_EH_PE_omit && !read_encoded(cursor, byte, base)) ||
	    !read_bytes(cursor, &byte, 1) ||
	    (byte != DW_EH_PE_omit && !read_uleb128(cursor, &ignored)) ||
	    !read_bytes(cursor, encoding, 1) || !read_uleb128(cursor, &size_bytes))
		return false;
	/* Landing pads are relative to the base. */
	if ((*encoding & 0x70) != DW_EH_PE_absptr ||
	    size_bytes > (uint64_t)(cursor->end - cursor->at))
		return false;
	cursor->end = cursor->at + size_bytes;
	return true;
}

int frame_entry_read_pads(const struct elf_image *image, const struct frame_entry *entry,
			  uint64_t ret[FRAME_MAX_PADS])
{
	_cleanup_free_ uint8_t *bytes = NULL;
	uint64_t base = entry->first, first, size_bytes, pad, action;
	struct cursor cursor = {.address = entry->pads};
	size_t nr_bytes;
	uint8_t encoding;
	int nr = 0;

	if (!entry->pads)
		return 0;
	bytes = malloc(MAX_PADS_BYTES);
	if (!bytes)
		return -ENOMEM;
	nr_bytes = elf_image_read_address(image, entry->pads, bytes, MAX_PADS_BYTES);
	cursor.at = bytes;
	cursor.end = bytes + nr_bytes;
	if (!read_head(&cursor, &base, &encoding))
		return -ENOTSUP;
	while (cursor.at < cursor.end) {
		if (!read_encoded(&cursor, encoding, &first) ||
		    !read_encoded(&cursor, encoding, &size_bytes) ||
		    !read_encoded(&cursor, encoding, &pad) || !read_uleb128(&cursor, &action) ||
		    nr == FRAME_MAX_PADS)
			return -ENOTSUP;
		if (pad)
			ret[nr++] = base + pad;
	}
	return nr;
}
