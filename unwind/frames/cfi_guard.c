/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/frames/cfi_guard.h"

#include "common/elf/elf_file.h"
#include "common/elf/elf_section.h"

#include <dwarf.h>
#include <gelf.h>
#include <string.h>

#define MAX_REGISTER   1023 /* AArch64 has numbers up to 127; libdw makes 8 KiB of this one */
#define MAX_REMEMBERED 64   /* states at a time */
#define MAX_EXPRESSION 1024 /* bytes; libdw keeps 32 bytes for each */
#define MAX_PROGRAM    (256u << 10) /* bytes; those of the longest functions have 100 KiB */
#define MAX_NUMBER     5	    /* bytes of a LEB128 number of 32 bits */
/* Without a table: entries, of which libdw keeps 100 bytes each, and bytes to look at. */
#define MAX_ENTRIES    (1u << 18)
#define KEPT_FOR_ENTRY 112 /* bytes */
#define KEPT_FOR_ROW   512 /* of the usual registers */
#define MAX_CHECKED    (64u << 20)

/* A program of call frame instructions (DWARF 5, 6.4.2). */
struct program {
	const uint8_t *at, *end;
	unsigned remembered;
	/* What libdw may keep: each register of a common entry, each expression. */
	uint64_t registers_bytes, kept_bytes;
};

/* Skips bytes. Returns false if they are not there. */
static bool skip(struct program *program, uint64_t nr)
{
	if (nr > (uint64_t)(program->end - program->at))
		return false;
	program->at += nr;
	return true;
}

/* Reads an unsigned number of at most 32 bits or so. Of a signed one, only the length counts. */
static bool read_number(struct program *program, uint64_t *ret)
{
	*ret = 0;
	for (unsigned i = 0; i < MAX_NUMBER && program->at < program->end; i++) {
		uint8_t byte = *program->at++;

		*ret |= (uint64_t)(byte & 0x7f) << (7 * i);
		if (!(byte & 0x80))
			return true;
	}
	return false;
}

/* Numbers that name no register may have any size. */
static bool skip_number(struct program *program)
{
	while (program->at < program->end)
		if (!(*program->at++ & 0x80))
			return true;
	return false;
}

static bool skip_register(struct program *program)
{
	uint64_t number;

	if (!read_number(program, &number) || number > MAX_REGISTER)
		return false;
	if (number * 16 > program->registers_bytes)
		program->registers_bytes = number * 16;
	return true;
}

static bool skip_block(struct program *program)
{
	uint64_t size;

	if (!read_number(program, &size) || size > MAX_EXPRESSION || !skip(program, size))
		return false;
	program->kept_bytes += 32 * size;
	return true;
}

static bool remember(struct program *program)
{
	return ++program->remembered <= MAX_REMEMBERED;
}

static bool restore(struct program *program)
{
	program->remembered -= program->remembered > 0;
	return true;
}

/* Skips the operands of @opcode. Returns false if they are not to be trusted. */
static bool skip_operands(struct program *program, uint8_t opcode)
{
	switch (opcode) {
	case DW_CFA_nop:
	case DW_CFA_GNU_window_save: /* DW_CFA_AARCH64_negate_ra_state */
		return true;
	case DW_CFA_remember_state:
		return remember(program);
	case DW_CFA_restore_state:
		return restore(program);
	case DW_CFA_advance_loc1:
		return skip(program, 1);
	case DW_CFA_advance_loc2:
		return skip(program, 2);
	case DW_CFA_advance_loc4:
		return skip(program, 4);
	case DW_CFA_def_cfa_offset:
	case DW_CFA_def_cfa_offset_sf:
	case DW_CFA_GNU_args_size:
		return skip_number(program);
	case DW_CFA_def_cfa_expression:
		return skip_block(program);
	case DW_CFA_expression:
	case DW_CFA_val_expression:
		return skip_register(program) && skip_block(program);
	case DW_CFA_def_cfa_register:
	case DW_CFA_restore_extended:
	case DW_CFA_undefined:
	case DW_CFA_same_value:
		return skip_register(program);
	case DW_CFA_def_cfa:
	case DW_CFA_def_cfa_sf:
	case DW_CFA_offset_extended:
	case DW_CFA_offset_extended_sf:
	case DW_CFA_val_offset:
	case DW_CFA_val_offset_sf:
	case DW_CFA_GNU_negative_offset_extended:
	case DW_CFA_register:
		return skip_register(program) && skip_number(program);
	case DW_CFA_set_loc: /* no compiler writes these two */
	case DW_CFA_MIPS_advance_loc8:
		return false;
	default:
		/* libdw does not go on. The rows before it are good. */
		program->at = program->end;
		return true;
	}
}

static bool is_trusted(const uint8_t *begin, const uint8_t *end, uint64_t *kept_bytes)
{
	struct program program = {.at = begin, .end = end};

	if (begin > end || (size_t)(end - begin) > MAX_PROGRAM)
		return false;
	while (program.at < program.end) {
		uint8_t opcode = *program.at++, primary = opcode & 0xc0;
		/* The register of an offset or of a restore is in the opcode. */
		bool is_good = primary == DW_CFA_offset ? skip_number(&program)
			       : primary		? true
							: skip_operands(&program, opcode);

		if (!is_good)
			return false;
	}
	*kept_bytes += program.registers_bytes + program.kept_bytes;
	return true;
}

/* Reads the entry at @offset. Returns as dwarf_next_cfi(). */
static int read_entry(const struct cfi_guard *guard, uint64_t offset, Dwarf_Off *ret_next,
		      Dwarf_CFI_Entry *ret)
{
	return dwarf_next_cfi(guard->ident, guard->frames, guard->is_eh, offset, ret_next, ret);
}

/* The bytes of an encoded address; 0: none that linkers write. */
static unsigned encoded_bytes(uint8_t encoding)
{
	if ((encoding & 0x70) == DW_EH_PE_aligned)
		return 0;
	switch (encoding & 0x0f) {
	case DW_EH_PE_absptr:
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8:
		return 8;
	case DW_EH_PE_udata4:
	case DW_EH_PE_sdata4:
		return 4;
	case DW_EH_PE_udata2:
	case DW_EH_PE_sdata2:
		return 2;
	default:
		return 0;
	}
}

/* Finds how many bytes each of an entry's two addresses has. Returns false if that is not sure. */
static bool read_augmentation(const Dwarf_CIE *common, unsigned *ret)
{
	struct program data = {.at = common->augmentation_data};
	const char *letter = common->augmentation;
	uint8_t encoding;

	*ret = sizeof(uint64_t);
	if (!*letter)
		return true;
	if (*letter++ != 'z' || !data.at)
		return false;
	data.end = data.at + common->augmentation_data_size;
	for (; *letter; letter++) {
		if (*letter == 'S' || *letter == 'B')
			continue;
		if (data.at == data.end || !strchr("RLP", *letter))
			return false;
		encoding = *data.at++;
		if (*letter == 'R' &&
		    (encoding & DW_EH_PE_indirect || !(*ret = encoded_bytes(encoding))))
			return false;
		if (*letter == 'P' &&
		    (!encoded_bytes(encoding) || !skip(&data, encoded_bytes(encoding))))
			return false;
	}
	return true;
}

/* True if libdw may execute the entry (FDE), and the common one (CIE) that it names. */
static bool is_trusted_entry(struct cfi_guard *guard, const Dwarf_FDE *entry)
{
	struct program program = {.at = entry->start, .end = entry->end};
	Dwarf_CFI_Entry common;
	Dwarf_Off next;
	unsigned bytes;
	uint64_t size, kept_bytes = KEPT_FOR_ROW;

	/* What libdw does not read, it does not execute. */
	if (read_entry(guard, entry->CIE_pointer, &next, &common) != 0 || !dwarf_cfi_cie_p(&common))
		return true;
	guard->checked += next - entry->CIE_pointer;
	if (next - entry->CIE_pointer > MAX_PROGRAM || program.at > program.end ||
	    !read_augmentation(&common.cie, &bytes) || !skip(&program, 2 * (uint64_t)bytes))
		return false;
	if (common.cie.augmentation[0] && (!read_number(&program, &size) || !skip(&program, size)))
		return false;
	if (!is_trusted(program.at, program.end, &kept_bytes) ||
	    !is_trusted(common.cie.initial_instructions, common.cie.initial_instructions_end,
			&kept_bytes))
		return false;
	if (kept_bytes > guard->row_bytes)
		guard->row_bytes = kept_bytes;
	return true;
}

/* True if that holds for all entries, and they are not too many. */
static bool are_trusted(struct cfi_guard *guard)
{
	Dwarf_Off offset = 0, next = 0;

	for (size_t i = 0; i < MAX_ENTRIES && guard->checked <= MAX_CHECKED; i++, offset = next) {
		Dwarf_CFI_Entry entry;
		int result = read_entry(guard, offset, &next, &entry);

		/* libdw passes over a bad entry, unless it has no end. */
		if (result > 0 || (result < 0 && next == offset))
			return true;
		guard->checked += next - offset;
		guard->kept_bytes += KEPT_FOR_ENTRY;
		if (result == 0 && !dwarf_cfi_cie_p(&entry) && !is_trusted_entry(guard, &entry.fde))
			return false;
	}
	return false;
}

static uint64_t read_signed(const struct cfi_guard *guard, size_t number)
{
	int32_t distance;

	memcpy(&distance, guard->table + number * sizeof(distance), sizeof(distance));
	return guard->table_vaddr + (uint64_t)(int64_t)distance;
}

/*
 * Uses .eh_frame_hdr, as all linkers write it: version 1, the address of .eh_frame as pcrel |
 * sdata4, the number of entries as udata4, entries of two datarel | sdata4. Without a table, both
 * are omitted. *@ret_frames: the address of .eh_frame.
 */
static bool use_table(struct cfi_guard *guard, const uint8_t *header, size_t size, uint64_t vaddr,
		      uint64_t *ret_frames)
{
	static const uint8_t with_table[] = {1, 0x1b, 0x03, 0x3b},
			     without[] = {1, 0x1b, 0xff, 0xff};
	uint32_t nr;
	int32_t distance;

	if (size < sizeof(with_table) + sizeof(distance))
		return false;
	memcpy(&distance, header + 4, sizeof(distance));
	*ret_frames = vaddr + 4 + (uint64_t)(int64_t)distance;
	if (memcmp(header, without, sizeof(without)) == 0)
		return true;
	if (memcmp(header, with_table, sizeof(with_table)) != 0 || size < 12)
		return false;
	memcpy(&nr, header + 8, sizeof(nr));
	if (nr > (size - 12) / 8)
		return false;
	if (!nr)
		return true;
	guard->table = header + 12;
	guard->table_vaddr = vaddr;
	guard->nr = nr;
	return true;
}

/* Of a file without section headers. */
static bool find_by_segment(struct cfi_guard *guard, Elf *elf)
{
	size_t nr, file_size = 0;
	GElf_Phdr segment;
	Elf_Data *header;

	if (elf_getphdrnum(elf, &nr))
		return true;
	for (size_t i = 0; i < nr; i++) {
		if (!gelf_getphdr(elf, (int)i, &segment))
			return true;
		if (segment.p_type != PT_GNU_EH_FRAME)
			continue;
		header = elf_getdata_rawchunk(elf, (int64_t)segment.p_offset, segment.p_filesz,
					      ELF_T_BYTE);
		if (!header || !header->d_buf)
			return true;
		if (!use_table(guard, header->d_buf, segment.p_filesz, segment.p_vaddr,
			       &guard->frames_vaddr))
			return false;
		uint64_t offset = guard->frames_vaddr - segment.p_vaddr + segment.p_offset;

		if (!elf_rawfile(elf, &file_size) || offset >= file_size)
			return false;
		guard->frames =
			elf_getdata_rawchunk(elf, (int64_t)offset, file_size - offset, ELF_T_BYTE);
		return true;
	}
	return true;
}

static bool find_by_sections(struct cfi_guard *guard, Elf *elf, size_t names)
{
	Elf_Scn *section = NULL, *table = NULL;
	GElf_Shdr header, table_header = {0};
	uint64_t frames_vaddr;

	while ((section = elf_nextscn(elf, section))) {
		const char *name = gelf_getshdr(section, &header)
					   ? elf_strptr(elf, names, header.sh_name)
					   : NULL;

		if (name && strcmp(name, ".eh_frame_hdr") == 0) {
			table = section;
			table_header = header;
		}
		if (name && strcmp(name, ".eh_frame") == 0)
			break;
	}
	if (!section)
		return find_by_segment(guard, elf);
	if (header.sh_type == SHT_NOBITS)
		return true;
	guard->frames = elf_rawdata(section, NULL);
	guard->frames_vaddr = header.sh_addr;
	Elf_Data *data = table ? elf_rawdata(table, NULL) : NULL;
	if (!data || !data->d_buf)
		return true;
	if (!use_table(guard, data->d_buf, data->d_size, table_header.sh_addr, &frames_vaddr))
		return false;
	/* It is another section's. */
	if (frames_vaddr != header.sh_addr)
		guard->table = NULL;
	return true;
}

/*
 * True for the files that are unwound. Others have addresses of other sizes, and may come as debug
 * files.
 */
static bool is_known_kind(const unsigned char *ident)
{
	return ident && ident[EI_CLASS] == ELFCLASS64 && ident[EI_DATA] == ELFDATA2LSB;
}

/* Without a table, libdw may come to any entry. */
static void finish(struct cfi_guard *guard, bool is_good)
{
	guard->is_refused = !is_good || !is_known_kind(guard->ident) || !guard->frames ||
			    !guard->frames->d_buf || (!guard->table && !are_trusted(guard));
}

void cfi_guard_init_eh(struct cfi_guard *guard, Elf *elf)
{
	size_t names;

	*guard = (struct cfi_guard){.is_eh = true};
	guard->ident = (const unsigned char *)elf_getident(elf, NULL);
	if (!guard->ident || elf_getshdrstrndx(elf, &names))
		finish(guard, false);
	else
		finish(guard,
		       names ? find_by_sections(guard, elf, names) : find_by_segment(guard, elf));
}

/*
 * True if libdw might take the section for .debug_frame: there are names for compressed, split and
 * intermediate ones. Relocations of one, which some linked files have, it takes for nothing.
 */
static bool is_debug_frame(const char *name)
{
	return name && strstr(name, "debug_frame") && strncmp(name, ".rel", 4) != 0;
}

/* Which of several libdw uses depends on much (libdw/dwarf_begin_elf.c): linkers make one. */
static bool find_debug_frames(struct cfi_guard *guard, Elf *elf)
{
	struct elf_section section = {0};

	while (elf_section_next(elf, &section)) {
		const char *name = section.name;

		if (section.header.sh_type == SHT_NOBITS || !is_debug_frame(name))
			continue;
		if (guard->frames || section.header.sh_flags & SHF_GROUP ||
		    (strcmp(name, ".debug_frame") != 0 && strcmp(name, ".zdebug_frame") != 0))
			return false;
		/* libdw has expanded it. */
		guard->frames = elf_getdata(section.handle, NULL);
	}
	return true;
}

void cfi_guard_init_debug(struct cfi_guard *guard, Dwarf *dwarf)
{
	Elf *elf = dwarf ? dwarf_getelf(dwarf) : NULL;

	*guard = (struct cfi_guard){.ident = (const unsigned char *)elf_getident(elf, NULL)};
	finish(guard, elf && find_debug_frames(guard, elf));
}

bool cfi_guard_allows_debug(Elf *elf)
{
	return elf && elf_file_expanded_bytes(elf) <= CFI_GUARD_MAX_EXPANDED;
}

/*
 * Finds the entry in the table. The steps are libdw's (binary_search_fde() in libdw/fde.c), because
 * the table need not be sorted. Returns false if there is none.
 */
static bool search_table(const struct cfi_guard *guard, uint64_t vaddr, uint64_t *ret_offset)
{
	size_t low = 0, high = guard->nr;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (vaddr < read_signed(guard, 2 * middle)) {
			high = middle;
			continue;
		}
		low = middle + 1;
		if (low < guard->nr && vaddr >= read_signed(guard, 2 * low))
			continue;
		*ret_offset = read_signed(guard, 2 * middle + 1) - guard->frames_vaddr;
		return true;
	}
	return false;
}

static bool is_allowed(struct cfi_guard *guard, uint64_t vaddr)
{
	Dwarf_CFI_Entry entry;
	Dwarf_Off next;
	uint64_t offset;

	if (guard->is_refused || !guard->table)
		return !guard->is_refused;
	guard->row_bytes = 0;
	return !search_table(guard, vaddr, &offset) ||
	       read_entry(guard, offset, &next, &entry) != 0 || dwarf_cfi_cie_p(&entry) ||
	       is_trusted_entry(guard, &entry.fde);
}

bool cfi_guard_allows(struct cfi_guard *guard, uint64_t vaddr)
{
	bool allows = is_allowed(guard, vaddr);

	guard->kept_bytes += guard->row_bytes;
	return allows;
}
