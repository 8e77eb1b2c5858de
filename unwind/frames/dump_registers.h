/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The registers of a stack dump: perf's numbering, by which the kernel stores them, and DWARF's, by
 * which they are unwound. x86-64 and AArch64, wherever the recording is read.
 */
#ifndef LEAKTOOLS_UNWIND_DUMP_REGISTERS_H
#define LEAKTOOLS_UNWIND_DUMP_REGISTERS_H

#include "unwind/frames/stack_dump.h"

#include <errno.h>
#include <string.h>

#define DUMP_MAX_DWARF_REGISTERS 32
#define DUMP_MAX_STACK_BYTES	 (1u << 30) /* what is farther above is no part of the stack */

/* All zeros before the first dump; decoding the next one keeps what goes by the mask alone. */
struct dump_registers {
	uint16_t machine; /* EM_X86_64, EM_AARCH64 */
	uint64_t pc, sp;
	/* By DWARF number from 0; not recorded: 0. The last is none: for those without a number. */
	uint64_t dwarf[DUMP_MAX_DWARF_REGISTERS + 1];
	unsigned nr_dwarf;

	uint64_t regs_mask;	  /* of which the following tells */
	unsigned nr;		  /* of the registers recorded; 0: not those that are needed */
	unsigned pc_at, sp_at;	  /* among them */
	uint8_t dwarf_number[64]; /* of each of them */
};

/*
 * Decodes the registers of @dump. Returns 0, or -ENODATA: none were recorded, or not the
 * instruction and stack pointers, or those of a 32-bit task.
 */
int dump_registers_decode(const struct stack_dump *dump, struct dump_registers *ret);

/* Register @number in perf's order. Returns false if it was not recorded. */
bool dump_register(const struct stack_dump *dump, unsigned number, uint64_t *ret);

/* stack_dump_read_u64() where the stack pointer is known already. */
static inline int dump_read_u64(const struct stack_dump *dump, uint64_t sp, uint64_t address,
				uint64_t *ret)
{
	if (!dump->bytes || address < sp || dump->nr_bytes < sizeof(*ret) ||
	    address - sp > dump->nr_bytes - sizeof(*ret))
		return -EFAULT;
	memcpy(ret, dump->bytes + (address - sp), sizeof(*ret));
	return 0;
}

/* The 8 bytes at @address are on the stack, by their distance, but not all in the dump. */
static inline bool dump_ends_before(const struct stack_dump *dump, uint64_t sp, uint64_t address)
{
	uint64_t offset = address - sp;

	return address >= sp && offset < DUMP_MAX_STACK_BYTES &&
	       offset + sizeof(address) > dump->nr_bytes;
}

#endif
