/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/dump_registers.h"

#include "common/scope.h"

#include <elf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>

/*
 * The kernel's numbers (arch/x86/include/uapi/asm/perf_regs.h, arch/arm64/include/uapi/asm/
 * perf_regs.h). Not included: both are needed on either machine.
 */
enum {
	X86_SP = 7,
	X86_IP = 8,
	ARM64_SP = 31,
	ARM64_PC = 32,
};

#define NO_DWARF_NUMBER 0xff

/*
 * The DWARF number (System V ABI, AMD64 supplement, figure 3.36) of each of perf's: ax, bx, cx, dx,
 * si, di, bp, sp, ip, flags, the six segments, r8 to r15.
 */
static const uint8_t x86_64_dwarf_numbers[] = {
	0,
	3,
	2,
	1,
	4,
	5,
	6,
	7,
	16,
	NO_DWARF_NUMBER,
	NO_DWARF_NUMBER,
	NO_DWARF_NUMBER,
	NO_DWARF_NUMBER,
	NO_DWARF_NUMBER,
	NO_DWARF_NUMBER,
	NO_DWARF_NUMBER,
	8,
	9,
	10,
	11,
	12,
	13,
	14,
	15,
};

bool dump_register(const struct stack_dump *dump, unsigned number, uint64_t *ret)
{
	uint64_t bit = 1ull << (number & 63);

	if (number > 63 || !dump->regs || !(dump->regs_mask & bit))
		return false;
	*ret = dump->regs[__builtin_popcountll(dump->regs_mask & (bit - 1))];
	return true;
}

/* x86 has no registers 24 to 31; AArch64's stack pointer is 31. */
static bool is_arm64(const struct stack_dump *dump)
{
	return dump->regs_mask & (1ull << ARM64_SP);
}

int dump_registers_decode(const struct stack_dump *dump, struct dump_registers *ret)
{
	bool arm64 = is_arm64(dump);
	const uint64_t *registers = dump->regs;

	*ret = (struct dump_registers){.machine = arm64 ? EM_AARCH64 : EM_X86_64};
	if (dump->regs_abi != PERF_SAMPLE_REGS_ABI_64 ||
	    !dump_register(dump, arm64 ? ARM64_PC : X86_IP, &ret->pc) ||
	    !dump_register(dump, arm64 ? ARM64_SP : X86_SP, &ret->sp))
		return -ENODATA;

	/* AArch64's x0 to x30 and sp have the same numbers in both. */
	ret->nr_dwarf = arm64 ? 32 : 17;
	for (uint64_t mask = dump->regs_mask; mask; mask &= mask - 1) {
		unsigned number = (unsigned)__builtin_ctzll(mask);
		uint64_t value = *registers++;

		if (!arm64 && number < ARRAY_SIZE(x86_64_dwarf_numbers))
			number = x86_64_dwarf_numbers[number];
		else if (!arm64)
			continue;
		if (number < ret->nr_dwarf)
			ret->dwarf[number] = value;
	}
	return 0;
}

int stack_dump_read_u64(const struct stack_dump *dump, uint64_t address, uint64_t *ret)
{
	uint64_t sp;

	if (!dump_register(dump, is_arm64(dump) ? ARM64_SP : X86_SP, &sp))
		return -EFAULT;
	return dump_read_u64(dump, sp, address, ret);
}
