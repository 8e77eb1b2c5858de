/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/x86/frame_state.h"

#define MAX_FRAME_BYTES 65536

/* The bytes of the stack that an operand names. */
struct stack_bytes {
	bool is_stack;
	bool is_exact;	/* false: somewhere on the stack */
	int64_t offset; /* from the stack pointer at the entry */
	int64_t size_bytes;
};

struct frame_state frame_state_entry(void)
{
	struct frame_state state = {.registers = register_state_unknown()};

	for (uint32_t i = 0; i < NR_REGISTERS; i++)
		state.registers.values[i] = value_make(VALUE_ENTRY, i);
	state.registers.values[REGISTER_SP] = value_make(VALUE_STACK, 0);
	return state;
}

int32_t frame_state_stack_pointer(const struct frame_state *state)
{
	return (int32_t)state->registers.values[REGISTER_SP].number;
}

/* What lies below the stack pointer stays known for now: a leaf function may use it. */
static bool set_stack_pointer(struct frame_state *state, int64_t offset)
{
	if (offset > 0 || offset < -MAX_FRAME_BYTES)
		return false;
	state->registers.values[REGISTER_SP] = value_make(VALUE_STACK, (uint32_t)(int32_t)offset);
	return true;
}

static bool holds_stack_address(const struct frame_state *state, ZydisRegister reg)
{
	int number = register_number(reg);

	return number != NO_REGISTER && state->registers.values[number].kind == VALUE_STACK;
}

static struct stack_bytes find_bytes(const struct frame_state *state,
				     const ZydisDecodedOperand *operand)
{
	struct stack_bytes place = {.size_bytes = operand->size / 8};
	bool is_base;

	if (operand->type != ZYDIS_OPERAND_TYPE_MEMORY)
		return place;
	is_base = holds_stack_address(state, operand->mem.base);
	place.is_stack = is_base || holds_stack_address(state, operand->mem.index);
	if (!is_base || operand->mem.index != ZYDIS_REGISTER_NONE)
		return place;
	place.is_exact = operand->mem.type == ZYDIS_MEMOP_TYPE_MEM &&
			 ZydisRegisterGetClass(operand->mem.base) == ZYDIS_REGCLASS_GPR64 &&
			 operand->mem.segment != ZYDIS_REGISTER_FS &&
			 operand->mem.segment != ZYDIS_REGISTER_GS && operand->size % 8 == 0 &&
			 operand->size > 0;
	place.offset = (int32_t)state->registers.values[register_number(operand->mem.base)].number +
		       operand->mem.disp.value;
	return place;
}

/* The slot at @place, or NULL if @place is not exactly one slot. */
static struct value *find_slot(struct frame_state *state, const struct stack_bytes *place)
{
	int64_t number =
		-place->offset / FRAME_SLOT_BYTES; /* The slot's number: from 1, downwards. */

	if (!place->is_stack || !place->is_exact || place->size_bytes != FRAME_SLOT_BYTES ||
	    place->offset % FRAME_SLOT_BYTES != 0 || number < 1 || number > FRAME_NR_SLOTS)
		return NULL;
	return &state->slots[number - 1];
}

/* Forgets what is stored at @place. Returns false if that may be the return address. */
static bool forget_bytes(struct frame_state *state, const struct stack_bytes *place)
{
	for (int64_t i = 0; i < FRAME_NR_SLOTS; i++) {
		int64_t first = -FRAME_SLOT_BYTES * (i + 1);

		if (!place->is_exact || (first < place->offset + place->size_bytes &&
					 place->offset < first + FRAME_SLOT_BYTES))
			state->slots[i] = value_make(VALUE_UNKNOWN, 0);
	}
	return !place->is_exact || place->offset >= FRAME_SLOT_BYTES ||
	       place->offset + place->size_bytes <= 0;
}

/*
 * Applies an instruction that neither moves the stack nor uses its address except to access memory.
 * Returns false for others.
 */
static bool step_other(struct frame_state *state, const struct instruction *instruction)
{
	for (int i = 0; i < instruction->info.operand_count; i++) {
		const ZydisDecodedOperand *operand = &instruction->operands[i];
		struct stack_bytes place = find_bytes(state, operand);
		bool is_written = operand->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE;

		if (operand->type == ZYDIS_OPERAND_TYPE_REGISTER) {
			bool is_read = operand->actions & ZYDIS_OPERAND_ACTION_MASK_READ;

			if (is_read && holds_stack_address(state, operand->reg.value))
				return false;
			if (is_written && register_number(operand->reg.value) == REGISTER_SP)
				return false;
		}
		if (place.is_stack && operand->mem.type != ZYDIS_MEMOP_TYPE_MEM)
			return false;
		if (place.is_stack && is_written && !forget_bytes(state, &place))
			return false;
	}
	register_state_step(&state->registers, instruction);
	return true;
}

/* The number of the 64-bit register that an operand is, or NO_REGISTER. */
static int whole_register(const ZydisDecodedOperand *operand)
{
	if (operand->type != ZYDIS_OPERAND_TYPE_REGISTER || operand->size != 64)
		return NO_REGISTER;
	return register_number(operand->reg.value);
}

static bool step_push(struct frame_state *state, const struct instruction *instruction)
{
	int source = whole_register(&instruction->operands[0]);
	int64_t offset = (int64_t)frame_state_stack_pointer(state) - FRAME_SLOT_BYTES;
	struct stack_bytes place = {true, true, offset, FRAME_SLOT_BYTES};
	struct value value = value_make(VALUE_UNKNOWN, 0);
	struct value *slot = find_slot(state, &place);

	if (instruction->info.operand_width != 64)
		return false;
	if (source != NO_REGISTER)
		value = state->registers.values[source];
	if (value.kind == VALUE_STACK || !set_stack_pointer(state, offset))
		return false;
	if (slot)
		*slot = value;
	return true;
}

static bool pop_into(struct frame_state *state, int target)
{
	int64_t offset = frame_state_stack_pointer(state);
	struct stack_bytes place = {true, true, offset, FRAME_SLOT_BYTES};
	struct value *slot = find_slot(state, &place);

	if (!set_stack_pointer(state, offset + FRAME_SLOT_BYTES))
		return false;
	state->registers.values[target] = slot ? *slot : value_make(VALUE_UNKNOWN, 0);
	if (state->registers.tested == target)
		state->registers.tested = NO_REGISTER;
	return true;
}

static bool step_pop(struct frame_state *state, const struct instruction *instruction)
{
	int target = whole_register(&instruction->operands[0]);

	return target != NO_REGISTER && target != REGISTER_SP && pop_into(state, target);
}

static bool step_leave(struct frame_state *state, const struct instruction *instruction)
{
	struct value frame = state->registers.values[REGISTER_BP];

	return instruction->info.operand_width == 64 && frame.kind == VALUE_STACK &&
	       set_stack_pointer(state, (int32_t)frame.number) && pop_into(state, REGISTER_BP);
}

static bool step_call(struct frame_state *state, const struct instruction *instruction)
{
	int64_t stack_pointer = frame_state_stack_pointer(state);

	if (instruction->info.meta.branch_type != ZYDIS_BRANCH_TYPE_NEAR)
		return false;
	for (int64_t i = 0; i < FRAME_NR_SLOTS; i++)
		if (-FRAME_SLOT_BYTES * (i + 1) < stack_pointer)
			state->slots[i] = value_make(VALUE_UNKNOWN, 0);
	register_state_call(&state->registers);
	return true;
}

/*
 * Follows a `lea` that has nothing to do with the stack, or that sets the stack pointer to a
 * register plus a constant.
 */
static bool step_lea(struct frame_state *state, const struct instruction *instruction)
{
	const ZydisDecodedOperand *from = &instruction->operands[1];

	if (!holds_stack_address(state, from->mem.base) &&
	    !holds_stack_address(state, from->mem.index))
		return whole_register(&instruction->operands[0]) != REGISTER_SP &&
		       step_other(state, instruction);
	if (whole_register(&instruction->operands[0]) != REGISTER_SP ||
	    !holds_stack_address(state, from->mem.base) || from->mem.index != ZYDIS_REGISTER_NONE ||
	    instruction->info.address_width != 64)
		return false;
	return set_stack_pointer(
		state, (int32_t)state->registers.values[register_number(from->mem.base)].number +
			       from->mem.disp.value);
}

/* Follows `mov %rsp,%rbp` and `mov %rbp,%rsp`. Stack addresses may go nowhere else. */
static bool move_stack_address(struct frame_state *state, int target, int source)
{
	struct value value = state->registers.values[source];

	if (target == REGISTER_BP && source == REGISTER_SP) {
		state->registers.values[target] = value;
		if (state->registers.tested == target)
			state->registers.tested = NO_REGISTER;
		return true;
	}
	return target == REGISTER_SP && source == REGISTER_BP && value.kind == VALUE_STACK &&
	       set_stack_pointer(state, (int32_t)value.number);
}

static bool step_move(struct frame_state *state, const struct instruction *instruction)
{
	const ZydisDecodedOperand *operands = instruction->operands;
	int target = whole_register(&operands[0]);
	int source = whole_register(&operands[1]);
	/* Now, as the instruction may change the register that the place is relative to. */
	struct stack_bytes place = find_bytes(state, &operands[target == NO_REGISTER ? 0 : 1]);
	struct value *slot = find_slot(state, &place);

	if (target != NO_REGISTER && source != NO_REGISTER &&
	    (target == REGISTER_SP || state->registers.values[source].kind == VALUE_STACK))
		return move_stack_address(state, target, source);
	/* This forgets the target, of which more is known if all 8 bytes are moved. */
	if (!step_other(state, instruction))
		return false;
	if (slot && source != NO_REGISTER)
		*slot = state->registers.values[source];
	else if (slot && target != NO_REGISTER)
		state->registers.values[target] = *slot;
	return true;
}

static bool step_add(struct frame_state *state, const struct instruction *instruction)
{
	const ZydisDecodedOperand *amount = &instruction->operands[1];
	bool is_sub = instruction->info.mnemonic == ZYDIS_MNEMONIC_SUB;

	if (whole_register(&instruction->operands[0]) != REGISTER_SP)
		return step_other(state, instruction);
	if (amount->type != ZYDIS_OPERAND_TYPE_IMMEDIATE || amount->imm.value.s > MAX_FRAME_BYTES ||
	    amount->imm.value.s < -MAX_FRAME_BYTES)
		return false;
	/* The flags do not tell of the tested register any more. */
	state->registers.tested = NO_REGISTER;
	return set_stack_pointer(state,
				 frame_state_stack_pointer(state) +
					 (is_sub ? -amount->imm.value.s : amount->imm.value.s));
}

bool frame_state_step(struct frame_state *state, const struct instruction *instruction)
{
	switch (instruction->info.mnemonic) {
	case ZYDIS_MNEMONIC_PUSH:
		return step_push(state, instruction);
	case ZYDIS_MNEMONIC_POP:
		return step_pop(state, instruction);
	case ZYDIS_MNEMONIC_LEAVE:
		return step_leave(state, instruction);
	case ZYDIS_MNEMONIC_CALL:
		return step_call(state, instruction);
	case ZYDIS_MNEMONIC_LEA:
		return step_lea(state, instruction);
	case ZYDIS_MNEMONIC_MOV:
		return step_move(state, instruction);
	case ZYDIS_MNEMONIC_ADD:
	case ZYDIS_MNEMONIC_SUB:
		return step_add(state, instruction);
	default:
		return step_other(state, instruction);
	}
}

bool frame_state_is_callers(const struct frame_state *state)
{
	static const uint32_t kept[] = {REGISTER_BX,  REGISTER_BP,  REGISTER_R12,
					REGISTER_R13, REGISTER_R14, REGISTER_R15};

	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		if (!value_is(state->registers.values[kept[i]], VALUE_ENTRY, kept[i]))
			return false;
	return frame_state_stack_pointer(state) == 0;
}

bool frame_state_join(struct frame_state *state, const struct frame_state *other,
		      bool *ret_is_changed)
{
	const struct register_state before = state->registers;

	*ret_is_changed = false;
	if (frame_state_stack_pointer(state) != frame_state_stack_pointer(other))
		return false;
	*ret_is_changed = register_state_join(&state->registers, &other->registers);
	for (int i = 0; i < FRAME_NR_SLOTS; i++) {
		struct value value = register_state_join_value(&before, state->slots[i],
							       &other->registers, other->slots[i]);

		*ret_is_changed |= !value_equals(value, state->slots[i]);
		state->slots[i] = value;
	}
	return true;
}
