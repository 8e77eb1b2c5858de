/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The registers of a stack dump, in perf's numbering, which the kernel uses, and in DWARF's, which
 * unwinding uses. Handles x86-64 and AArch64 on either machine.
 */
#ifndef LEAKTOOLS_UNWIND_DUMP_REGISTERS_H
#define LEAKTOOLS_UNWIND_DUMP_REGISTERS_H

#include "unwind/frames/stack_dump.h"

#include <errno.h>
#include <string.h>

#define DUMP_MAX_DWARF_REGISTERS 32
#define DUMP_MAX_STACK_BYTES	 (1u << 30) /* an address farther above is not on the stack */

/* Zero it before the first dump. Decoding the next dump keeps what follows from the mask alone. */
struct dump_registers {
	uint16_t machine; /* EM_X86_64, EM_AARCH64 */
	uint64_t pc, sp;
	/*
	 * By DWARF number from 0; 0 if not recorded. The last one takes registers without a number.
	 */
	uint64_t dwarf[DUMP_MAX_DWARF_REGISTERS + 1];
	unsigned nr_dwarf;

	uint64_t regs_mask;	  /* the mask that the following describe */
	unsigned nr;		  /* registers recorded; 0: the needed ones are missing */
	unsigned pc_at, sp_at;	  /* indices of pc and sp */
	uint8_t dwarf_number[64]; /* by index */
};

/*
 * Decodes the registers of @dump. Returns 0, or -ENODATA if none were recorded, if the instruction
 * pointer or the stack pointer is missing, or if the task is a 32-bit one.
 */
int dump_registers_decode(const struct stack_dump *dump, struct dump_registers *ret);

/* Reads register @number in perf's numbering. Returns false if it was not recorded. */
bool dump_register(const struct stack_dump *dump, unsigned number, uint64_t *ret);

/* stack_dump_read_u64() for a known stack pointer. */
static inline int dump_read_u64(const struct stack_dump *dump, uint64_t sp, uint64_t address,
				uint64_t *ret)
{
	if (!dump->bytes || address < sp || dump->nr_bytes < sizeof(*ret) ||
	    address - sp > dump->nr_bytes - sizeof(*ret))
		return -EFAULT;
	memcpy(ret, dump->bytes + (address - sp), sizeof(*ret));
	return 0;
}

/* True if the 8 bytes at @address are near enough to be on the stack, but not all in the dump. */
static inline bool dump_ends_before(const struct stack_dump *dump, uint64_t sp, uint64_t address)
{
	uint64_t offset = address - sp;

	return address >= sp && offset < DUMP_MAX_STACK_BYTES &&
	       offset + sizeof(address) > dump->nr_bytes;
}

#endif
