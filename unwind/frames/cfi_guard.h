/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Looks at call frame information before libdw executes it. Files are hostile, and libdw believes
 * them (execute_cfi() in libdw/cfi.c, elfutils 0.188): a register's number makes an array of up to
 * 2 GiB, for each row again, and each remembered state a copy of it. So programs with numbers that
 * no machine has, and very long ones, are kept from it.
 *
 * The guard finds the entry of an address as libdw does. Where libdw can do so in several ways, a
 * file must take the one that linkers take. What the guard does not find is refused: ask it only
 * for tables that libdw has found.
 */
#ifndef LEAKTOOLS_UNWIND_CFI_GUARD_H
#define LEAKTOOLS_UNWIND_CFI_GUARD_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CFI_GUARD_MAX_EXPANDED (64u << 20) /* bytes, of debug sections */

struct cfi_guard {
	const unsigned char *ident; /* of the ELF file */
	Elf_Data *frames;	    /* .eh_frame or .debug_frame */
	bool is_eh;
	/* .eh_frame_hdr: NULL: libdw reads one entry after the other */
	const uint8_t *table;
	size_t nr;
	uint64_t table_vaddr, frames_vaddr;
	bool is_refused;     /* nothing of it may be used */
	uint64_t checked;    /* bytes that were looked at */
	uint64_t row_bytes;  /* that libdw may keep for the row that is asked for, at most */
	uint64_t kept_bytes; /* that libdw may have kept */
};

/* For what dwarf_getcfi_elf() makes of @elf, which must stay as long as the guard. */
void cfi_guard_init_eh(struct cfi_guard *guard, Elf *elf);
/* For what dwarf_getcfi() makes of @dwarf. */
void cfi_guard_init_debug(struct cfi_guard *guard, Dwarf *dwarf);

/*
 * True if libdwfl may be asked for the .debug_frame of a module with the file @elf: it expands all
 * compressed debug sections of the file for that. As few files have a .debug_frame that is needed,
 * large ones are not used. (Separate debug files: struct debuginfo_options.)
 */
bool cfi_guard_allows_debug(Elf *elf);

/* True if dwarf_cfi_addrframe() may be asked for @vaddr, an address as in the file. */
bool cfi_guard_allows(struct cfi_guard *guard, uint64_t vaddr);

#endif
