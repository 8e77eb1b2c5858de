/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/x86/store_finder.h"

#include "probes/x86/code_flow.h"

/*
 * Indexed by register number. The names are those of regs_query_register_offset(),
 * arch/x86/kernel/ptrace.c (6.1).
 */
static const char *const tracefs_register_names[16] = {"ax",  "cx",  "dx",  "bx", "sp",	 "bp",
						       "si",  "di",  "r8",  "r9", "r10", "r11",
						       "r12", "r13", "r14", "r15"};

static const char *register_name(ZydisRegister reg)
{
	ZyanI8 number = ZydisRegisterGetId(reg);

	if (ZydisRegisterGetClass(reg) != ZYDIS_REGCLASS_GPR64 || number < 0 || number > 15)
		return NULL;
	return tracefs_register_names[number];
}

static bool is_store(const struct instruction *instruction, struct store_site *ret)
{
	const ZydisDecodedOperand *to = &instruction->operands[0],
				  *from = &instruction->operands[1];

	if (instruction->info.mnemonic != ZYDIS_MNEMONIC_MOV ||
	    instruction->info.operand_count_visible != 2 || to->type != ZYDIS_OPERAND_TYPE_MEMORY ||
	    from->type != ZYDIS_OPERAND_TYPE_REGISTER || to->size != 64)
		return false;
	if (to->mem.index != ZYDIS_REGISTER_NONE || to->mem.disp.value != 0 ||
	    to->mem.base == ZYDIS_REGISTER_RSP || to->mem.segment == ZYDIS_REGISTER_FS ||
	    to->mem.segment == ZYDIS_REGISTER_GS)
		return false;
	ret->base_register = register_name(to->mem.base);
	ret->value_register = register_name(from->reg.value);
	return ret->base_register && ret->value_register;
}

int store_finder_find(const uint8_t *code, size_t size, struct store_site *ret, size_t max)
{
	struct code_flow flow;
	size_t nr = 0;
	int err = code_flow_init(&flow, code, size);

	if (err)
		return err;
	for (size_t offset = 0; offset < size && nr < max; offset++) {
		struct instruction instruction;

		if (code_flow_decode(&flow, offset, &instruction) &&
		    is_store(&instruction, &ret[nr]))
			ret[nr++].offset = offset;
	}
	code_flow_deinit(&flow);
	return (int)nr;
}
