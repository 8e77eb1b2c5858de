/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/store_finder.h"

#include "common/scope.h"

#include <errno.h>
#include <stdbool.h>

#include <Zydis/Zydis.h>

/* By register number. The names are regs_query_register_offset()'s, arch/x86/kernel/ptrace.c (6.1).
 */
static const char *const tracefs_register_names[16] = {"ax",  "cx",  "dx",  "bx", "sp",	 "bp",
						       "si",  "di",  "r8",  "r9", "r10", "r11",
						       "r12", "r13", "r14", "r15"};

struct flow {
	const uint8_t *code;
	size_t size;
	bool *is_start;	   /* by offset: an instruction that was reached starts here */
	uint32_t *pending; /* offsets still to follow; each offset enters once */
	size_t nr_pending;
	bool *is_queued;
};

static void flow_queue(struct flow *flow, uint64_t offset)
{
	if (offset >= flow->size || flow->is_queued[offset])
		return;
	flow->is_queued[offset] = true;
	flow->pending[flow->nr_pending++] = offset;
}

/* Queues where @instruction at @offset can go, within the function. */
static void follow(struct flow *flow, size_t offset, const ZydisDecodedInstruction *instruction,
		   const ZydisDecodedOperand *operands)
{
	uint64_t next = offset + instruction->length;
	bool is_branch = instruction->meta.category == ZYDIS_CATEGORY_UNCOND_BR ||
			 instruction->meta.category == ZYDIS_CATEGORY_COND_BR;

	if (is_branch && instruction->operand_count_visible > 0 &&
	    operands[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE && operands[0].imm.is_relative)
		flow_queue(flow, next + operands[0].imm.value.u);
	if (instruction->meta.category == ZYDIS_CATEGORY_UNCOND_BR ||
	    instruction->meta.category == ZYDIS_CATEGORY_RET ||
	    instruction->meta.category == ZYDIS_CATEGORY_INTERRUPT ||
	    instruction->mnemonic == ZYDIS_MNEMONIC_HLT ||
	    instruction->mnemonic == ZYDIS_MNEMONIC_UD2)
		return;
	flow_queue(flow, next);
}

static const char *register_name(ZydisRegister reg)
{
	ZyanI8 number = ZydisRegisterGetId(reg);

	if (ZydisRegisterGetClass(reg) != ZYDIS_REGCLASS_GPR64 || number < 0 || number > 15)
		return NULL;
	return tracefs_register_names[number];
}

static bool is_store(const ZydisDecodedInstruction *instruction,
		     const ZydisDecodedOperand *operands, struct store_site *ret)
{
	const ZydisDecodedOperand *to = &operands[0], *from = &operands[1];

	if (instruction->mnemonic != ZYDIS_MNEMONIC_MOV ||
	    instruction->operand_count_visible != 2 || to->type != ZYDIS_OPERAND_TYPE_MEMORY ||
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

/* Marks every instruction that is reached from the entry. */
static void follow_all(struct flow *flow, const ZydisDecoder *decoder)
{
	flow_queue(flow, 0);
	while (flow->nr_pending > 0) {
		size_t offset = flow->pending[--flow->nr_pending];
		ZydisDecodedInstruction instruction;
		ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];

		if (ZYAN_FAILED(ZydisDecoderDecodeFull(decoder, flow->code + offset,
						       flow->size - offset, &instruction,
						       operands)))
			continue;
		flow->is_start[offset] = true;
		follow(flow, offset, &instruction, operands);
	}
}

int store_finder_find(const uint8_t *code, size_t size, struct store_site *ret, size_t max)
{
	_cleanup_free_ uint32_t *pending = NULL;
	_cleanup_free_ bool *is_start = NULL, *is_queued = NULL;
	ZydisDecoder decoder;
	struct flow flow;
	size_t nr = 0;

	if (size > STORE_FINDER_MAX_CODE_BYTES)
		return -E2BIG;
	if (size == 0)
		return 0;
	pending = calloc(size, sizeof(*pending));
	is_start = calloc(size, sizeof(*is_start));
	is_queued = calloc(size, sizeof(*is_queued));
	if (!pending || !is_start || !is_queued)
		return -ENOMEM;
	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	flow = (struct flow){.code = code,
			     .size = size,
			     .is_start = is_start,
			     .pending = pending,
			     .is_queued = is_queued};
	follow_all(&flow, &decoder);

	for (size_t offset = 0; offset < size && nr < max; offset++) {
		ZydisDecodedInstruction instruction;
		ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];

		if (!is_start[offset] ||
		    ZYAN_FAILED(ZydisDecoderDecodeFull(&decoder, code + offset, size - offset,
						       &instruction, operands)) ||
		    !is_store(&instruction, operands, &ret[nr]))
			continue;
		ret[nr++].offset = offset;
	}
	return nr;
}
