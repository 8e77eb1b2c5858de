/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Turns a row of AArch64's call frame information, as elfutils describes it, into a rule. Compilers
 * save registers at the CFA only, which is the stack pointer or a preserved register plus an
 * offset; all other rows become CFI_COMPLEX. elfutils skips DW_CFA_AARCH64_negate_ra_state
 * (0.188, libdw/cfi.c), and unwinding does not need it (arm64_unwinder.h).
 */
#include "unwind/frames/cfi_rules.h"

#include <dwarf.h>
#include <string.h>

/* Of the registers that a call preserves, AAPCS64 6.1.1; and the link register. */
#define FIRST_PRESERVED 19

_Static_assert(ARM64_LINK - FIRST_PRESERVED < CFI_NR_REGISTERS, "more than cfi_rule.saved holds");

static bool fits(uint64_t offset)
{
	return (int64_t)offset == (int32_t)(int64_t)offset;
}

static bool read_cfa(Dwarf_Frame *row, struct cfi_rule *rule)
{
	Dwarf_Op *ops;
	uint64_t number, offset;
	size_t nr;

	if (dwarf_frame_cfa(row, &ops, &nr) || nr != 1)
		return false;
	if (ops[0].atom >= DW_OP_breg0 && ops[0].atom <= DW_OP_breg31) {
		number = ops[0].atom - DW_OP_breg0;
		offset = ops[0].number;
	} else if (ops[0].atom == DW_OP_bregx) {
		number = ops[0].number;
		offset = ops[0].number2;
	} else {
		return false;
	}
	rule->cfa = CFA_REGISTER;
	rule->cfa_register = (uint8_t)number;
	rule->cfa_offset = (int32_t)offset;
	return number <= ARM64_SP && fits(offset);
}

/* Adds the row's rule for register @number. Returns false if no rule can express it. */
static bool read_register(Dwarf_Frame *row, unsigned number, struct cfi_rule *rule)
{
	struct cfi_saved saved = {.number = (uint8_t)number, .where = SAVED_AT_CFA};
	Dwarf_Op memory[3], *ops;
	size_t nr;

	if (dwarf_frame_register(row, (int)number, memory, &ops, &nr))
		return false;
	if (!nr) {
		/* NULL means "same value", otherwise the register is undefined (libdw.h). */
		if (!ops)
			rule->same |= 1u << number;
		else if (number == ARM64_LINK)
			rule->kind = CFI_OUTERMOST;
		return true;
	}
	if (ops[0].atom != DW_OP_call_frame_cfa || nr > 2 ||
	    (nr == 2 && (ops[1].atom != DW_OP_plus_uconst || !fits(ops[1].number))))
		return false;
	saved.offset = nr == 2 ? (int32_t)ops[1].number : 0;
	rule->saved[rule->nr_saved++] = saved;
	return true;
}

void cfi_rule_read_arm64(Dwarf_Frame *row, struct cfi_rule *ret)
{
	bool expressible;

	memset(ret, 0, sizeof(*ret));
	ret->is_arm64 = true;
	expressible = dwarf_frame_info(row, NULL, NULL, &ret->signal_frame) == ARM64_LINK;
	for (unsigned number = FIRST_PRESERVED; expressible && number <= ARM64_LINK; number++)
		expressible = read_register(row, number, ret);
	if (expressible && ret->kind == CFI_FRAME)
		expressible = read_cfa(row, ret);
	if (!expressible || ret->kind == CFI_OUTERMOST) {
		memset(ret, 0, sizeof(*ret));
		ret->kind = expressible ? CFI_OUTERMOST : CFI_COMPLEX;
	}
}
