/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/x86/code_returns.h"

#include "common/scope.h"

#include <errno.h>

#define MAX_STEPS	 100000 /* instructions, for all questions together */
#define MAX_INSTRUCTIONS 1024	/* of one function */
#define NR_SLOTS	 (2 * MAX_INSTRUCTIONS)

/* System V psABI for x86-64, 3.2.3 */
static const uint8_t argument_registers[CODE_RETURNS_NR_ARGS] = {
	REGISTER_DI, REGISTER_SI, REGISTER_DX, REGISTER_CX, 8, 9};

/* An instruction that was reached, in a hash table by offset. */
struct reached {
	uint64_t offset;
	struct register_state registers;
	bool is_used, is_pending;
};

/* One walk through one function. */
struct walk {
	struct code_returns *returns;
	bool passes_calls; /* calls that may return are passed; otherwise none */
	bool may_return;
	struct reached *slots;
	uint32_t *pending; /* indexes of slots, each at most once */
	size_t nr_pending, nr_used;
};

void code_returns_init(struct code_returns *ret, const struct elf_image *image, uint64_t offset)
{
	*ret = (struct code_returns){.nr_steps_left = MAX_STEPS};
	code_segment_init(&ret->segment, image, offset);
}

static bool decode_at(struct code_returns *returns, uint64_t offset, struct instruction *ret)
{
	bool is_decoded;

	if (returns->nr_steps_left == 0)
		return false;
	is_decoded = code_segment_decode(&returns->segment, offset, ret);
	if (returns->segment.error)
		returns->error = returns->segment.error;
	else
		returns->nr_steps_left--;
	return is_decoded;
}

static struct reached *find_slot(struct walk *walk, uint64_t offset)
{
	size_t i = (offset * 0x9e3779b97f4a7c15ull >> 32) % NR_SLOTS;

	while (walk->slots[i].is_used && walk->slots[i].offset != offset)
		i = (i + 1) % NR_SLOTS;
	return &walk->slots[i];
}

/* Adds @registers to what is known at @offset, to which control may come with them. */
static void reach(struct walk *walk, uint64_t offset, const struct register_state *registers)
{
	struct reached *slot;

	if (!code_segment_holds(&walk->returns->segment, offset)) {
		walk->may_return = true;
		return;
	}
	slot = find_slot(walk, offset);
	if (!slot->is_used) {
		if (walk->nr_used++ >= MAX_INSTRUCTIONS) {
			walk->may_return = true;
			return;
		}
		*slot = (struct reached){
			.offset = offset, .registers = *registers, .is_used = true};
	} else if (!register_state_join(&slot->registers, registers)) {
		return;
	}
	if (slot->is_pending)
		return;
	slot->is_pending = true;
	walk->pending[walk->nr_pending++] = (uint32_t)(slot - walk->slots);
}

static void follow_call(struct walk *walk, uint64_t offset, const struct instruction *instruction,
			struct register_state *registers)
{
	uint64_t target;

	if (!walk->passes_calls || (instruction_target(instruction, offset, &target) &&
				    !code_may_return(walk->returns, target, registers)))
		return;
	register_state_step(registers, instruction);
	register_state_call(registers);
	reach(walk, offset + instruction->info.length, registers);
}

static void follow_jump(struct walk *walk, uint64_t offset, const struct instruction *instruction,
			const struct register_state *registers)
{
	bool is_conditional = instruction->info.meta.category == ZYDIS_CATEGORY_COND_BR;
	struct register_state taken = *registers;
	struct register_state passed = *registers;
	uint64_t target;

	if (!instruction_target(instruction, offset, &target)) {
		walk->may_return = true;
		return;
	}
	if (register_state_branch(&taken, instruction, true)) {
		register_state_step(&taken, instruction);
		reach(walk, target, &taken);
	}
	if (is_conditional && register_state_branch(&passed, instruction, false)) {
		register_state_step(&passed, instruction);
		reach(walk, offset + instruction->info.length, &passed);
	}
}

static void follow(struct walk *walk, uint64_t offset, struct register_state registers)
{
	struct instruction instruction;

	if (!decode_at(walk->returns, offset, &instruction) ||
	    instruction_is_ambiguous(&instruction)) {
		walk->may_return = true;
		return;
	}
	switch (instruction.info.meta.category) {
	case ZYDIS_CATEGORY_CALL:
		follow_call(walk, offset, &instruction, &registers);
		break;
	case ZYDIS_CATEGORY_COND_BR:
	case ZYDIS_CATEGORY_UNCOND_BR:
		follow_jump(walk, offset, &instruction, &registers);
		break;
	case ZYDIS_CATEGORY_RET:
	case ZYDIS_CATEGORY_SYSRET:
		walk->may_return = true;
		break;
	default:
		if (instruction_traps(&instruction))
			break;
		register_state_step(&registers, &instruction);
		reach(walk, offset + instruction.info.length, &registers);
		break;
	}
}

static struct register_state call_registers(const struct code_call *call)
{
	struct register_state registers = register_state_unknown();

	for (int i = 0; i < CODE_RETURNS_NR_ARGS; i++)
		registers.values[argument_registers[i]] = call->args[i];
	return registers;
}

/* True if a walk from @call finds a return; with @passes_calls, also after calls. */
static bool finds_return(struct code_returns *returns, const struct code_call *call,
			 bool passes_calls)
{
	_cleanup_free_ struct reached *slots = calloc(NR_SLOTS, sizeof(*slots));
	_cleanup_free_ uint32_t *pending = calloc(MAX_INSTRUCTIONS, sizeof(*pending));
	struct walk walk = {.returns = returns,
			    .passes_calls = passes_calls,
			    .slots = slots,
			    .pending = pending};
	struct register_state registers = call_registers(call);

	if (!slots || !pending) {
		returns->error = -ENOMEM;
		return true;
	}
	reach(&walk, call->offset, &registers);
	while (walk.nr_pending > 0 && !walk.may_return) {
		struct reached *slot = &slots[pending[--walk.nr_pending]];

		slot->is_pending = false;
		follow(&walk, slot->offset, slot->registers);
	}
	return walk.may_return;
}

static bool call_equals(const struct code_call *a, const struct code_call *b)
{
	for (int i = 0; i < CODE_RETURNS_NR_ARGS; i++)
		if (!value_equals(a->args[i], b->args[i]))
			return false;
	return a->offset == b->offset;
}

/* An answer "may return" may depend on a question that is not answered yet; it is not kept then. */
static void keep_answer(struct code_returns *returns, const struct code_call *call, bool may_return)
{
	if ((may_return && returns->depth > 0) || returns->nr_answers == CODE_RETURNS_MAX_ANSWERS)
		return;
	returns->answers[returns->nr_answers].call = *call;
	returns->answers[returns->nr_answers++].may_return = may_return;
}

static bool find_answer(const struct code_returns *returns, const struct code_call *call,
			bool *ret_may_return)
{
	for (size_t i = 0; i < returns->nr_answers; i++) {
		if (call_equals(&returns->answers[i].call, call)) {
			*ret_may_return = returns->answers[i].may_return;
			return true;
		}
	}
	for (int i = 0; i < returns->depth; i++) {
		if (call_equals(&returns->asked[i], call)) {
			*ret_may_return = true;
			return true;
		}
	}
	return false;
}

bool code_may_return(struct code_returns *returns, uint64_t offset,
		     const struct register_state *registers)
{
	struct code_call call = {.offset = offset};
	bool may_return;

	for (int i = 0; i < CODE_RETURNS_NR_ARGS; i++)
		if (registers->values[argument_registers[i]].kind == VALUE_CONSTANT)
			call.args[i] = registers->values[argument_registers[i]];
	if (find_answer(returns, &call, &may_return))
		return may_return;
	if (returns->depth == CODE_RETURNS_MAX_DEPTH)
		return true;
	returns->asked[returns->depth++] = call;
	/* Most functions can return without a call. That is found quickly. */
	may_return = finds_return(returns, &call, false) || finds_return(returns, &call, true);
	returns->depth--;
	keep_answer(returns, &call, may_return);
	return may_return;
}
