/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/frames/dump_registers.h"

#include "common/scope.h"

#include <elf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>

/*
 * The kernel's numbers (arch/x86/include/uapi/asm/perf_regs.h,
 * arch/arm64/include/uapi/asm/perf_regs.h). Both are needed on either machine, so neither header is
 * included.
 */
enum {
	X86_SP = 7,
	X86_IP = 8,
	PERF_ARM64_SP = 31,
	PERF_ARM64_PC = 32,
};

#define NO_DWARF_NUMBER DUMP_MAX_DWARF_REGISTERS

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

/* x86 has no registers 24 to 31. AArch64's stack pointer is 31. */
static bool is_arm64(uint64_t regs_mask)
{
	return regs_mask & (1ull << PERF_ARM64_SP);
}

/* AArch64's x0 to x30 and sp have the same number in perf and in DWARF. */
static uint8_t dwarf_number(bool arm64, unsigned number)
{
	if (arm64)
		return number < DUMP_MAX_DWARF_REGISTERS ? (uint8_t)number : NO_DWARF_NUMBER;
	return number < ARRAY_SIZE(x86_64_dwarf_numbers) ? x86_64_dwarf_numbers[number]
							 : NO_DWARF_NUMBER;
}

/* Derives from the mask which register is which. */
static void read_mask(uint64_t regs_mask, struct dump_registers *ret)
{
	const bool arm64 = is_arm64(regs_mask);
	const uint64_t pc = 1ull << (arm64 ? PERF_ARM64_PC : X86_IP);
	const uint64_t sp = 1ull << (arm64 ? PERF_ARM64_SP : X86_SP);
	unsigned nr = 0;

	*ret = (struct dump_registers){
		.machine = arm64 ? EM_AARCH64 : EM_X86_64,
		.nr_dwarf = arm64 ? 32 : 17,
		.regs_mask = regs_mask,
		.pc_at = (unsigned)__builtin_popcountll(regs_mask & (pc - 1)),
		.sp_at = (unsigned)__builtin_popcountll(regs_mask & (sp - 1)),
	};
	if (!(regs_mask & pc) || !(regs_mask & sp))
		return;
	for (uint64_t mask = regs_mask; mask; mask &= mask - 1)
		ret->dwarf_number[nr++] = dwarf_number(arm64, (unsigned)__builtin_ctzll(mask));
	ret->nr = nr;
}

int dump_registers_decode(const struct stack_dump *dump, struct dump_registers *ret)
{
	if (dump->regs_mask != ret->regs_mask)
		read_mask(dump->regs_mask, ret);
	if (dump->regs_abi != PERF_SAMPLE_REGS_ABI_64 || !dump->regs || !ret->nr)
		return -ENODATA;
	ret->pc = dump->regs[ret->pc_at];
	ret->sp = dump->regs[ret->sp_at];
	for (unsigned i = 0; i < ret->nr; i++)
		ret->dwarf[ret->dwarf_number[i]] = dump->regs[i];
	return 0;
}

int stack_dump_read_u64(const struct stack_dump *dump, uint64_t address, uint64_t *ret)
{
	uint64_t sp;

	if (!dump_register(dump, is_arm64(dump->regs_mask) ? PERF_ARM64_SP : X86_SP, &sp))
		return -EFAULT;
	return dump_read_u64(dump, sp, address, ret);
}
