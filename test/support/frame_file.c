/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "test/support/frame_file.h"

#include <elf.h>
#include <string.h>

#define CODE	  0x100 /* addresses are offsets in the file */
#define CODE_SIZE 0x40
#define HEADER	  (CODE + CODE_SIZE) /* .eh_frame_hdr */
#define FRAMES	  (HEADER + 20)	     /* .eh_frame */

/* DWARF 5, 6.4.2 and 2.5; register 6 is rbp, 7 rsp, 16 the return address. */
const struct frame_entry frame_entries[FRAME_NR_ENTRIES] = {
	{"offset", .nr = 0},
	/* def_cfa rbp, 16; rbp at CFA - 16 */
	{"frame-pointer", .nr = 5, .instructions = {0x0c, 6, 16, 0x86, 2}},
	/* advance; def_cfa_offset 16; rbp at CFA - 16; remember; advance; def_cfa_register rbp;
	 * restore */
	{"states", .nr = 9, .instructions = {0x41, 0x0e, 16, 0x86, 2, 0x0a, 0x43, 0x0d, 6}},
	/* def_cfa_expression: rsp + 8 + ((rip & 15) >= 11) * 8, as in a procedure linkage table */
	{"plt", .nr = 13,
	 .instructions = {0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22}},
	/* expression: rbp at rsp + 16; val_expression: rbx is rsp + 0 */
	{"expressions", .nr = 10, .instructions = {0x10, 6, 2, 0x77, 16, 0x16, 3, 2, 0x77, 0}},
	/* def_cfa_expression: *(rsp + 160); the return address at rsp + 168 */
	{"signal", .is_signal_frame = true, .nr = 12,
	 .instructions = {0x0f, 4, 0x77, 0xa0, 1, 0x06, 0x10, 16, 3, 0x77, 0xa8, 1}},
	/* def_cfa_expression: the 4 bytes at rsp + 8, and rsp + 8; libdwfl is not asked */
	{"sized", .nr = 9, .instructions = {0x0f, 7, 0x77, 8, 0x94, 4, 0x77, 8, 0x22}},
	/* def_cfa_expression: (1 << 63) / -1, which ends the process that divides */
	{"division", .nr = 9, .instructions = {0x0f, 7, 0x31, 0x08, 63, 0x24, 0x09, 0xff, 0x1b}},
	/* def_cfa_expression: a jump to itself */
	{"jump", .nr = 5, .instructions = {0x0f, 3, 0x2f, 0xfd, 0xff}},
	/* val_expression: rbx is rsp, and an operation that libdwfl does not know */
	{"unknown", .nr = 6, .instructions = {0x16, 3, 3, 0x77, 0, 0x97}},
	/* register 266338304 at CFA - 8: libdw makes an array of 2 GiB */
	{"register", .nr = 6, .instructions = {0x05, 0x80, 0x80, 0x80, 0x7f, 1}},
	/* the return address is undefined; rbx is in r12, rbp the same, r13 CFA + 8 */
	{"outermost", .nr = 10, .instructions = {0x07, 16, 0x09, 3, 12, 0x08, 6, 0x14, 13, 1}},
	/* def_cfa_offset 16; x29 at CFA - 16, x30 at CFA - 8; negate_ra_state */
	{"arm64", .is_arm64 = true, .nr = 7, .instructions = {0x0e, 16, 0x9d, 2, 0x9e, 1, 0x2d}},
};

static uint8_t file[FRAME_FILE_MAX];

static void put32(size_t at, int64_t value)
{
	const int32_t small = (int32_t)value;

	memcpy(file + at, &small, sizeof(small));
}

static void put_headers(const struct frame_entry *entry, size_t size)
{
	const Elf64_Phdr segments[] = {
		{.p_type = PT_LOAD,
		 .p_flags = PF_R | PF_X,
		 .p_filesz = size,
		 .p_memsz = size,
		 .p_align = 0x1000},
		{.p_type = PT_GNU_EH_FRAME,
		 .p_flags = PF_R,
		 .p_offset = HEADER,
		 .p_vaddr = HEADER,
		 .p_filesz = FRAMES - HEADER,
		 .p_memsz = FRAMES - HEADER,
		 .p_align = 4},
	};
	const Elf64_Ehdr header = {
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			    EV_CURRENT},
		.e_type = ET_DYN,
		.e_machine = entry->is_arm64 ? EM_AARCH64 : EM_X86_64,
		.e_version = EV_CURRENT,
		.e_phoff = sizeof(header),
		.e_ehsize = sizeof(header),
		.e_phentsize = sizeof(segments[0]),
		.e_phnum = 2,
		.e_shentsize = sizeof(Elf64_Shdr),
	};

	memcpy(file, &header, sizeof(header));
	memcpy(file + sizeof(header), segments, sizeof(segments));
}

static size_t put(size_t at, const void *bytes, size_t nr)
{
	memcpy(file + at, bytes, nr);
	return at + nr;
}

/* Writes the common entry (CIE) at @at. Returns its end. */
static size_t put_common(const struct frame_entry *entry, size_t at)
{
	const char *augmentation = entry->is_signal_frame ? "zRS" : "zR";
	/* Alignment of code and data: 1 and -8; the return address; pcrel | sdata4 */
	const uint8_t head[] = {1, 0x78, entry->is_arm64 ? 30 : 16, 1, 0x1b};
	/* def_cfa rsp, 8; the return address at CFA - 8. Or: def_cfa sp, 0. */
	static const uint8_t x86[] = {0x0c, 7, 8, 0x90, 1}, arm64[] = {0x0c, 31, 0};
	size_t end = at + 8;

	end = put(end, &(const uint8_t){1}, 1); /* the version */
	end = put(end, augmentation, strlen(augmentation) + 1);
	end = put(end, head, sizeof(head));
	end = entry->is_arm64 ? put(end, arm64, sizeof(arm64)) : put(end, x86, sizeof(x86));
	put32(at, (int64_t)(end - at - 4));
	put32(at + 4, 0);
	return end;
}

size_t frame_file_make(const struct frame_entry *entry, uint8_t ret[static FRAME_FILE_MAX])
{
	size_t at, end;

	memset(file, 0, sizeof(file));
	at = put_common(entry, FRAMES);
	end = put(at + 17, entry->instructions, entry->nr);
	put32(at, (int64_t)(end - at - 4));
	put32(at + 4, (int64_t)(at + 4 - FRAMES));
	put32(at + 8, CODE - (int64_t)(at + 8));
	put32(at + 12, CODE_SIZE);
	/* Version 1; pcrel | sdata4, udata4, datarel | sdata4; a table of one entry */
	put(HEADER, (const uint8_t[]){1, 0x1b, 0x03, 0x3b}, 4);
	put32(HEADER + 4, FRAMES - (HEADER + 4));
	put32(HEADER + 8, 1);
	put32(HEADER + 12, CODE - HEADER);
	put32(HEADER + 16, (int64_t)(at - HEADER));
	end += 4; /* zeros end the section */
	put_headers(entry, end);
	memcpy(ret, file, end);
	return end;
}
