/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/x86/register_state.h"

#define SMALLEST_NEGATIVE_BYTE 0x80

struct register_state register_state_unknown(void)
{
	return (struct register_state){.tested = NO_REGISTER};
}

int register_number(ZydisRegister reg)
{
	ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);

	if (ZydisRegisterGetClass(whole) != ZYDIS_REGCLASS_GPR64)
		return NO_REGISTER;
	return ZydisRegisterGetId(whole);
}

/* The register that an operand is, with 64 bits or the lower 32. */
static int wide_register(const ZydisDecodedOperand *operand)
{
	if (operand->type != ZYDIS_OPERAND_TYPE_REGISTER ||
	    (operand->size != 32 && operand->size != 64))
		return NO_REGISTER;
	return register_number(operand->reg.value);
}

static struct value unknown_value(void)
{
	return value_make(VALUE_UNKNOWN, 0);
}

/* An immediate below @limit, above which the instruction might sign-extend it. */
static struct value immediate_value(const ZydisDecodedOperand *operand, uint64_t limit)
{
	if (operand->type != ZYDIS_OPERAND_TYPE_IMMEDIATE || operand->imm.value.u >= limit)
		return unknown_value();
	return value_make(VALUE_CONSTANT, (uint32_t)operand->imm.value.u);
}

static struct value moved_value(const struct register_state *state,
				const ZydisDecodedOperand *operands)
{
	int source = wide_register(&operands[1]);
	struct value value;

	if (operands[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
		/* A 32-bit mov clears the upper half. */
		value = immediate_value(&operands[1], 1ull << 31);
	} else if (source != NO_REGISTER) {
		value = state->values[source];
		if (operands[1].size != 64 && value.kind != VALUE_CONSTANT)
			value = unknown_value();
	} else {
		value = unknown_value();
	}
	return value;
}

static struct value masked_value(const struct register_state *state, int target,
				 const ZydisDecodedOperand *mask_operand)
{
	struct value value = state->values[target];
	struct value mask = immediate_value(mask_operand, SMALLEST_NEGATIVE_BYTE);

	if (value.kind != VALUE_CONSTANT || mask.kind != VALUE_CONSTANT)
		return unknown_value();
	return value_make(VALUE_CONSTANT, value.number & mask.number);
}

/* True if both operands are the same register, of 64 or 32 bits. */
static bool is_of_one_register(const ZydisDecodedOperand *operands)
{
	return wide_register(&operands[0]) != NO_REGISTER &&
	       operands[1].type == ZYDIS_OPERAND_TYPE_REGISTER &&
	       operands[0].reg.value == operands[1].reg.value;
}

/* The value of operands[0], of 32 or 64 bits, after @instruction. */
static struct value result_value(const struct register_state *state,
				 const struct instruction *instruction, int target)
{
	switch (instruction->info.mnemonic) {
	case ZYDIS_MNEMONIC_MOV:
		return moved_value(state, instruction->operands);
	case ZYDIS_MNEMONIC_XOR:
		return is_of_one_register(instruction->operands) ? value_make(VALUE_CONSTANT, 0)
								 : unknown_value();
	case ZYDIS_MNEMONIC_AND:
		return masked_value(state, target, &instruction->operands[1]);
	default:
		return unknown_value();
	}
}

static void forget_register(struct register_state *state, int target)
{
	state->values[target] = unknown_value();
	if (state->tested == target)
		state->tested = NO_REGISTER;
}

static bool changes_zero_flag(const ZydisDecodedInstruction *info)
{
	const ZydisAccessedFlags *flags = info->cpu_flags;

	return flags && ((flags->modified | flags->set_0 | flags->set_1 | flags->undefined) &
			 ZYDIS_CPUFLAG_ZF);
}

static void forget_written(struct register_state *state, const struct instruction *instruction)
{
	if (changes_zero_flag(&instruction->info))
		state->tested = NO_REGISTER;
	for (int i = 0; i < instruction->info.operand_count; i++) {
		const ZydisDecodedOperand *operand = &instruction->operands[i];
		int target;

		if (operand->type != ZYDIS_OPERAND_TYPE_REGISTER ||
		    !(operand->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
			continue;
		target = register_number(operand->reg.value);
		if (target != NO_REGISTER)
			forget_register(state, target);
		else if (ZydisRegisterGetClass(operand->reg.value) == ZYDIS_REGCLASS_FLAGS)
			state->tested = NO_REGISTER;
	}
}

/* True if the zero flag then shows whether operands[0] is 0. */
static bool tests_register(const struct instruction *instruction)
{
	return instruction->info.mnemonic == ZYDIS_MNEMONIC_AND ||
	       (instruction->info.mnemonic == ZYDIS_MNEMONIC_TEST &&
		is_of_one_register(instruction->operands));
}

void register_state_step(struct register_state *state, const struct instruction *instruction)
{
	int target = instruction->info.operand_count_visible >= 2
			     ? wide_register(&instruction->operands[0])
			     : NO_REGISTER;
	struct value result =
		target == NO_REGISTER ? unknown_value() : result_value(state, instruction, target);

	forget_written(state, instruction);
	if (instruction->info.mnemonic == ZYDIS_MNEMONIC_SYSCALL)
		forget_register(state, REGISTER_AX); /* a system call's result */
	if (result.kind != VALUE_UNKNOWN)
		state->values[target] = result;
	if (target != NO_REGISTER && tests_register(instruction)) {
		state->tested = (int8_t)target;
		state->tested_bits = (uint8_t)instruction->operands[0].size;
	}
}

void register_state_call(struct register_state *state)
{
	static const int lost[] = {REGISTER_AX, REGISTER_CX, REGISTER_DX, REGISTER_SI, REGISTER_DI,
				   8,		9,	     10,	  11};

	for (size_t i = 0; i < sizeof(lost) / sizeof(lost[0]); i++)
		state->values[lost[i]] = unknown_value();
	state->tested = NO_REGISTER;
}

bool register_state_branch(struct register_state *state, const struct instruction *instruction,
			   bool is_taken)
{
	ZydisMnemonic mnemonic = instruction->info.mnemonic;
	struct value *value;
	bool is_zero;

	if ((mnemonic != ZYDIS_MNEMONIC_JZ && mnemonic != ZYDIS_MNEMONIC_JNZ) ||
	    state->tested == NO_REGISTER)
		return true;
	value = &state->values[state->tested];
	is_zero = (mnemonic == ZYDIS_MNEMONIC_JZ) == is_taken;
	if (value->kind == VALUE_CONSTANT)
		return (value->number == 0) == is_zero;
	if (!is_zero || state->tested_bits != 64)
		return true;
	if (value->kind == VALUE_TOKEN)
		state->zero_tokens |= (uint16_t)(1u << value->number);
	else if (value->kind == VALUE_UNKNOWN)
		*value = value_make(VALUE_CONSTANT, 0);
	return true;
}

bool register_state_is_zero(const struct register_state *state, struct value value)
{
	return value_is(value, VALUE_CONSTANT, 0) ||
	       (value.kind == VALUE_TOKEN && (state->zero_tokens >> value.number & 1));
}

uint16_t register_state_tokens(const struct register_state *state, struct value value)
{
	if (register_state_is_zero(state, value))
		return state->zero_tokens;
	return value.kind == VALUE_TOKEN ? (uint16_t)(1u << value.number) : 0;
}

struct value register_state_join_value(const struct register_state *a_state, struct value a,
				       const struct register_state *b_state, struct value b)
{
	if (value_equals(a, b))
		return a;
	/* Where a token is 0, the constant 0 equals that token. */
	if (a.kind == VALUE_TOKEN && register_state_tokens(b_state, b) >> a.number & 1)
		return a;
	if (b.kind == VALUE_TOKEN && register_state_tokens(a_state, a) >> b.number & 1)
		return b;
	return unknown_value();
}

bool register_state_join(struct register_state *state, const struct register_state *other)
{
	const struct register_state before = *state;
	bool is_changed = false;

	for (int i = 0; i < NR_REGISTERS; i++) {
		state->values[i] = register_state_join_value(&before, before.values[i], other,
							     other->values[i]);
		is_changed |= !value_equals(state->values[i], before.values[i]);
	}
	state->zero_tokens &= other->zero_tokens;
	if (state->tested != other->tested || state->tested_bits != other->tested_bits)
		state->tested = NO_REGISTER;
	return is_changed || state->zero_tokens != before.zero_tokens ||
	       state->tested != before.tested;
}
