/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/frames/safe_row.h"

#include <dwarf.h>

#define MAX_OPERATIONS 64  /* a PLT's rule has 9, which are the most in compiled code */
#define NR_REGISTERS   128 /* libdwfl asks for up to 97, on AArch64 */

static bool is_harmless(const Dwarf_Op *op)
{
	/* Numbers, registers, and registers plus a number. */
	if (op->atom >= DW_OP_lit0 && op->atom <= DW_OP_breg31)
		return true;
	switch (op->atom) {
	case DW_OP_addr:
	case DW_OP_const1u:
	case DW_OP_const1s:
	case DW_OP_const2u:
	case DW_OP_const2s:
	case DW_OP_const4u:
	case DW_OP_const4s:
	case DW_OP_const8u:
	case DW_OP_const8s:
	case DW_OP_constu:
	case DW_OP_consts:
	case DW_OP_regx:
	case DW_OP_bregx:
	case DW_OP_dup:
	case DW_OP_drop:
	case DW_OP_pick:
	case DW_OP_over:
	case DW_OP_swap:
	case DW_OP_rot:
	case DW_OP_deref:
	case DW_OP_neg:
	case DW_OP_not:
	case DW_OP_plus_uconst:
	case DW_OP_and:
	case DW_OP_minus:
	case DW_OP_mul:
	case DW_OP_or:
	case DW_OP_plus:
	case DW_OP_shl:
	case DW_OP_shr:
	case DW_OP_shra:
	case DW_OP_xor:
	case DW_OP_le:
	case DW_OP_ge:
	case DW_OP_eq:
	case DW_OP_lt:
	case DW_OP_gt:
	case DW_OP_ne:
	case DW_OP_nop:
	case DW_OP_call_frame_cfa:
	case DW_OP_stack_value:
		return true;
	default:
		return false;
	}
}

static bool are_harmless(const Dwarf_Op *ops, size_t nr)
{
	if (nr > MAX_OPERATIONS)
		return false;
	for (size_t i = 0; i < nr; i++)
		if (!is_harmless(&ops[i]))
			return false;
	return true;
}

bool safe_row(Dwarf_Frame *row)
{
	Dwarf_Op room[3], *ops;
	size_t nr;

	/* What these refuse, libdwfl does not evaluate, either. */
	if (dwarf_frame_cfa(row, &ops, &nr) == 0 && !are_harmless(ops, nr))
		return false;
	for (int i = 0; i < NR_REGISTERS; i++)
		if (dwarf_frame_register(row, i, room, &ops, &nr) == 0 && !are_harmless(ops, nr))
			return false;
	return true;
}
