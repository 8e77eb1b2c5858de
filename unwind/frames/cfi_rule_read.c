/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Turns a row, as elfutils describes it, into a rule. It recognises all forms that occur in
 * compiled code, and those that assembler code needs: signal trampolines and the PLT.
 */
#include "unwind/frames/cfi_rules.h"

#include <dwarf.h>
#include <string.h>

#define RBX 3

/* Reads an operation that pushes a register's value plus an offset. */
static bool read_breg(const Dwarf_Op *op, uint8_t *ret_register, int32_t *ret_offset)
{
	uint64_t number;
	int64_t offset;

	if (op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31) {
		number = op->atom - DW_OP_breg0;
		offset = (int64_t)op->number;
	} else if (op->atom == DW_OP_bregx) {
		number = op->number;
		offset = (int64_t)op->number2;
	} else {
		return false;
	}
	if (number >= CFI_NR_REGISTERS || offset != (int32_t)offset)
		return false;
	*ret_register = (uint8_t)number;
	*ret_offset = (int32_t)offset;
	return true;
}

static bool read_plus(const Dwarf_Op *op, int32_t *ret_offset)
{
	int64_t offset = (int64_t)op->number;

	if (op->atom != DW_OP_plus_uconst || offset != (int32_t)offset)
		return false;
	*ret_offset = (int32_t)offset;
	return true;
}

/*
 * A lazy PLT entry pushes its number halfway. The linker describes all entries by one row
 * (binutils, bfd/elfxx-x86.c, elf_x86_64_eh_frame_lazy_plt): the CFA is 8 more from a certain byte
 * of the 16 on.
 */
static bool read_plt(const Dwarf_Op *ops, size_t nr, int32_t *ret_from)
{
	uint8_t register_number;
	int32_t offset;

	if (nr != 9 || !read_breg(&ops[1], &register_number, &offset) ||
	    register_number != CFI_RETURN_ADDRESS || offset || ops[2].atom != DW_OP_lit15 ||
	    ops[3].atom != DW_OP_and || ops[4].atom < DW_OP_lit0 || ops[4].atom > DW_OP_lit31 ||
	    ops[5].atom != DW_OP_ge || ops[6].atom != DW_OP_lit3 || ops[7].atom != DW_OP_shl ||
	    ops[8].atom != DW_OP_plus)
		return false;
	*ret_from = ops[4].atom - DW_OP_lit0;
	return true;
}

static bool read_cfa(Dwarf_Frame *row, struct cfi_rule *rule)
{
	Dwarf_Op *ops;
	size_t nr;

	if (dwarf_frame_cfa(row, &ops, &nr) || !nr ||
	    !read_breg(&ops[0], &rule->cfa_register, &rule->cfa_offset))
		return false;
	if (nr == 1) {
		rule->cfa = CFA_REGISTER;
		return true;
	}
	if (ops[1].atom == DW_OP_deref &&
	    (nr == 2 || (nr == 3 && read_plus(&ops[2], &rule->cfa_addend)))) {
		rule->cfa = CFA_MEMORY;
		return true;
	}
	rule->cfa = CFA_PLT;
	return read_plt(ops, nr, &rule->cfa_addend);
}

/*
 * elfutils begins every expression with the CFA (DW_OP_call_frame_cfa), as the standard demands,
 * and ends it with DW_OP_stack_value if the result is the value itself instead of its address.
 */
static bool read_saved(const Dwarf_Op *ops, size_t nr, struct cfi_saved *ret)
{
	bool is_value;

	if (nr == 1 && ops[0].atom == DW_OP_regx) {
		if (ops[0].number >= CFI_NR_REGISTERS)
			return false;
		ret->where = VALUE_OF_REGISTER;
		ret->base = (uint8_t)ops[0].number;
		return true;
	}
	if (ops[0].atom != DW_OP_call_frame_cfa)
		return false;
	is_value = ops[nr - 1].atom == DW_OP_stack_value;
	nr -= is_value;
	if (nr == 1 || (nr == 2 && read_plus(&ops[1], &ret->offset))) {
		ret->where = is_value ? VALUE_OF_CFA : SAVED_AT_CFA;
		return true;
	}
	ret->where = is_value ? VALUE_OF_REGISTER : SAVED_AT_REGISTER;
	return nr == 2 && read_breg(&ops[1], &ret->base, &ret->offset);
}

/* Adds the row's rule for register @number. Returns false if no rule can express it. */
static bool read_register(Dwarf_Frame *row, unsigned number, struct cfi_rule *rule)
{
	struct cfi_saved saved = {.number = (uint8_t)number};
	Dwarf_Op memory[3], *ops;
	size_t nr;

	if (dwarf_frame_register(row, (int)number, memory, &ops, &nr))
		return false;
	if (!nr) {
		/*
		 * NULL means "same value", otherwise the register is undefined (libdw.h). For rbx
		 * elfutils is wrong: its default should be "same value", but elfutils gives that
		 * default to rax (0.188, backends/x86_64_cfi.c). The CFA of _dl_runtime_resolve
		 * needs it.
		 */
		if (!ops || number == RBX)
			rule->same |= 1u << number;
		else if (number == CFI_RETURN_ADDRESS)
			rule->kind = CFI_OUTERMOST;
		return true;
	}
	if (!read_saved(ops, nr, &saved))
		return false;
	if (number == CFI_STACK_POINTER && saved.where == VALUE_OF_CFA && !saved.offset) {
		rule->sp_is_cfa = true;
		return true;
	}
	if (saved.where == SAVED_AT_CFA) {
		memmove(&rule->saved[rule->nr_at_cfa + 1], &rule->saved[rule->nr_at_cfa],
			(size_t)(rule->nr_saved - rule->nr_at_cfa) * sizeof(saved));
		rule->saved[rule->nr_at_cfa++] = saved;
		rule->at_cfa |= 1u << number;
		if (rule->nr_at_cfa == 1 || saved.offset < rule->lowest)
			rule->lowest = saved.offset;
		if (rule->nr_at_cfa == 1 || saved.offset > rule->highest)
			rule->highest = saved.offset;
	} else {
		rule->saved[rule->nr_saved] = saved;
	}
	rule->nr_saved++;
	return true;
}

void cfi_rule_read(Dwarf_Frame *row, struct cfi_rule *ret)
{
	bool expressible;

	memset(ret, 0, sizeof(*ret));
	expressible = dwarf_frame_info(row, NULL, NULL, &ret->signal_frame) == CFI_RETURN_ADDRESS;
	for (unsigned number = 0; expressible && number < CFI_NR_REGISTERS; number++)
		expressible = read_register(row, number, ret);
	if (expressible && ret->kind == CFI_FRAME)
		expressible = read_cfa(row, ret);
	if (!expressible || ret->kind == CFI_OUTERMOST) {
		memset(ret, 0, sizeof(*ret));
		ret->kind = expressible ? CFI_OUTERMOST : CFI_COMPLEX;
	}
}
