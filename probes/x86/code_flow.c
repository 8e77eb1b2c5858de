/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/x86/code_flow.h"

#include "probes/elf/analysis_limit.h"

#include "common/scope.h"

#include <errno.h>

#define STEPS_TO_DECODE 200 /* for analysis_limit.h */

/* Offsets still to follow. Each enters once, so @pending never exceeds the function's size. */
struct work_list {
	uint32_t *pending;
	size_t nr_pending;
	bool *is_queued;
};

static void work_list_add(struct work_list *work, const struct code_flow *flow, uint64_t offset)
{
	if (offset >= flow->size_bytes || work->is_queued[offset])
		return;
	work->is_queued[offset] = true;
	work->pending[work->nr_pending++] = (uint32_t)offset;
}

bool instruction_decode(struct instruction *ret, const uint8_t *code, size_t size_bytes)
{
	ZydisDecoder decoder;

	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	return ZYAN_SUCCESS(
		ZydisDecoderDecodeFull(&decoder, code, size_bytes, &ret->info, ret->operands));
}

bool code_flow_decode(const struct code_flow *flow, uint64_t offset, struct instruction *ret)
{
	return offset < flow->size_bytes && flow->is_start[offset] &&
	       instruction_decode(ret, flow->code + offset, flow->size_bytes - offset);
}

bool code_flow_has_target(const struct code_flow *flow, uint64_t first, uint64_t last)
{
	for (uint64_t offset = first; offset <= last && offset < flow->size_bytes; offset++)
		if (flow->is_target[offset])
			return true;
	return false;
}

bool instruction_target(const struct instruction *instruction, uint64_t offset,
			uint64_t *ret_target)
{
	for (int i = 0; i < instruction->info.operand_count_visible; i++) {
		const ZydisDecodedOperand *operand = &instruction->operands[i];

		if (operand->type == ZYDIS_OPERAND_TYPE_IMMEDIATE && operand->imm.is_relative) {
			*ret_target = offset + instruction->info.length + operand->imm.value.u;
			return true;
		}
	}
	return false;
}

bool instruction_is_ambiguous(const struct instruction *instruction)
{
	return instruction->info.meta.branch_type != ZYDIS_BRANCH_TYPE_NONE &&
	       instruction->info.attributes & ZYDIS_ATTRIB_HAS_OPERANDSIZE &&
	       !instruction->info.raw.rex.W;
}

bool instruction_traps(const struct instruction *instruction)
{
	return instruction->info.mnemonic == ZYDIS_MNEMONIC_HLT ||
	       instruction->info.mnemonic == ZYDIS_MNEMONIC_UD2;
}

static bool begins_with_endbr64(const struct code_flow *flow)
{
	static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};

	return flow->size_bytes >= sizeof(endbr64) &&
	       memcmp(flow->code, endbr64, sizeof(endbr64)) == 0;
}

/*
 * True if the indirect jump @instruction cannot go into this function after its entry. A jump
 * through a fixed pointer goes to another function (`jmp *symbol@GOTPCREL(%rip)`). In code built
 * for CET, a jump without the notrack prefix goes only to an endbr64 (Intel SDM, volume 1, Indirect
 * Branch Tracking); compilers put that prefix on jumps through a switch table.
 */
static bool leaves_function(const struct code_flow *flow, const struct instruction *instruction)
{
	const ZydisDecodedOperand *to = &instruction->operands[0];

	if (to->type == ZYDIS_OPERAND_TYPE_MEMORY && to->mem.base == ZYDIS_REGISTER_RIP)
		return true;
	return begins_with_endbr64(flow) &&
	       !(instruction->info.attributes & ZYDIS_ATTRIB_HAS_NOTRACK);
}

/* Adds the successors of @instruction at @offset, within the function. */
static void follow(struct code_flow *flow, struct work_list *work, uint64_t offset,
		   const struct instruction *instruction)
{
	ZydisInstructionCategory category = instruction->info.meta.category;
	uint64_t target;

	/* Not even its length is known. */
	if (instruction_is_ambiguous(instruction)) {
		flow->is_complete = false;
		return;
	}
	if (instruction_target(instruction, offset, &target)) {
		if (target < flow->size_bytes)
			flow->is_target[target] = true;
		if (category != ZYDIS_CATEGORY_CALL)
			work_list_add(work, flow, target);
	} else if (category == ZYDIS_CATEGORY_UNCOND_BR && !leaves_function(flow, instruction)) {
		flow->is_complete = false;
	}
	/* An `int` may return: a system call, or a signal handler or debugger that continues. */
	if (category == ZYDIS_CATEGORY_UNCOND_BR || category == ZYDIS_CATEGORY_RET ||
	    instruction_traps(instruction))
		return;
	work_list_add(work, flow, offset + instruction->info.length);
}

static void follow_all(struct code_flow *flow, struct work_list *work)
{
	work_list_add(work, flow, 0);
	while (work->nr_pending > 0 && !analysis_limit_is_reached(STEPS_TO_DECODE)) {
		uint64_t offset = work->pending[--work->nr_pending];
		struct instruction instruction;

		if (!instruction_decode(&instruction, flow->code + offset,
					flow->size_bytes - offset)) {
			flow->is_complete = false;
			continue;
		}
		flow->is_start[offset] = true;
		follow(flow, work, offset, &instruction);
	}
}

int code_flow_init(struct code_flow *ret, const uint8_t *code, size_t size_bytes)
{
	_cleanup_free_ uint32_t *pending = NULL;
	_cleanup_free_ bool *is_queued = NULL;
	struct work_list work;

	*ret = (struct code_flow){.code = code, .size_bytes = size_bytes, .is_complete = true};
	if (size_bytes > CODE_FLOW_MAX_BYTES)
		return -E2BIG;
	pending = calloc(size_bytes + 1, sizeof(*pending));
	is_queued = calloc(size_bytes + 1, sizeof(*is_queued));
	ret->is_start = calloc(size_bytes + 1, sizeof(*ret->is_start));
	ret->is_target = calloc(size_bytes + 1, sizeof(*ret->is_target));
	if (!pending || !is_queued || !ret->is_start || !ret->is_target) {
		code_flow_deinit(ret);
		return -ENOMEM;
	}
	work = (struct work_list){.pending = pending, .is_queued = is_queued};
	follow_all(ret, &work);
	return 0;
}

void code_flow_deinit(struct code_flow *flow)
{
	free(flow->is_start);
	free(flow->is_target);
	flow->is_start = NULL;
	flow->is_target = NULL;
}
