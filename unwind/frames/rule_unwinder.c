/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/frames/rule_unwinder.h"

#include "unwind/frames/rule_walk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(CFI_NR_REGISTERS <= DUMP_MAX_DWARF_REGISTERS, "registers do not fit");

int rule_unwinder_init(struct rule_unwinder *unwinder, struct module_table *modules,
		       struct debuginfo *debuginfo, bool own_vdso)
{
	*unwinder = (struct rule_unwinder){0};
	unwinder->cache = calloc(RULE_UNWINDER_CACHE_SIZE, sizeof(*unwinder->cache));
	if (!unwinder->cache || walk_cache_init(&unwinder->walks)) {
		free(unwinder->cache);
		unwinder->cache = NULL;
		return -ENOMEM;
	}
	cfi_rules_init(&unwinder->rules, modules, debuginfo, own_vdso);
	return 0;
}

/* Finds the rule for the code at @address through its mapping and module. */
static int look_up_rule(struct rule_unwinder *unwinder, const struct address_space *space,
			uint64_t address, const struct cfi_rule **ret)
{
	static const struct cfi_rule absent = {.kind = CFI_ABSENT};
	const struct mapping *mapping = address_space_find(space, address);
	int err = 0;

	*ret = &absent;
	unwinder->rules.is_late = false;
	if (mapping)
		err = cfi_rules_find(&unwinder->rules, mapping->module,
				     address - mapping->start + mapping->file_offset, ret);
	/* Its numbers are of other registers than this walk has. */
	if (!err && (*ret)->is_arm64)
		*ret = &absent;
	if (unwinder->epoch != unwinder->rules.epoch) {
		memset(unwinder->cache, 0, RULE_UNWINDER_CACHE_SIZE * sizeof(*unwinder->cache));
		unwinder->epoch = unwinder->rules.epoch;
	}
	return err;
}

/* The cached rule for the code at @address. NULL: out of memory. */
static inline const struct cfi_rule *get_rule(struct walk *walk, uint64_t address)
{
	struct rule_unwinder *unwinder = walk->unwinder;
	uint64_t generation = walk->space->generation;
	size_t slot = hash_mix(address, 0x9e3779b97f4a7c15 ^ generation);
	struct cached_rule *cached = &unwinder->cache[slot & (RULE_UNWINDER_CACHE_SIZE - 1)];
	const struct cfi_rule *rule;

	if (cached->address == address && cached->generation == generation)
		return cached->rule;
	if (look_up_rule(unwinder, walk->space, address, &rule))
		return NULL;
	if (!unwinder->rules.is_late)
		*cached = (struct cached_rule){
			.address = address, .generation = generation, .rule = rule};
	return rule;
}

/*
 * True if a return probe's trampoline has replaced the return address (Linux 6.18,
 * kernel/events/uprobes.c, prepare_uretprobe()). The kernel records the trampoline's mapping only
 * if it existed before the recording.
 */
static bool is_trampoline(const struct walk *walk)
{
	const struct frame *frame = &walk->frame;
	const struct mapping *mapping = address_space_find(walk->space, frame->pc);

	return frame->is_return && (!mapping || strcmp(mapping->module->path, "[uprobes]") == 0);
}

/*
 * No call comes before the return address, but a function begins there: makecontext(), for one,
 * builds such a stack, whose first function returns to the code that ends it.
 */
static const struct cfi_rule *get_made_rule(struct walk *walk, const struct cfi_rule *absent)
{
	const struct cfi_rule *rule = get_rule(walk, walk->frame.pc);

	if (!rule || rule->kind == CFI_ABSENT)
		return rule ? absent : NULL;
	walk->frame.is_return = false;
	walk->is_made = true;
	return rule;
}

/*
 * Finds the rule for the frame, after replacing a trampoline by the true address. NULL: out of
 * memory.
 */
static inline const struct cfi_rule *get_frame_rule(struct walk *walk)
{
	struct frame *frame = &walk->frame;
	const struct cfi_rule *rule = get_rule(walk, frame->pc - frame->is_return);

	if (!rule || rule->kind != CFI_ABSENT || !frame->is_return)
		return rule;
	if (walk->nr_pending == walk->dump->nr_pending_returns || !is_trampoline(walk))
		return get_made_rule(walk, rule);
	frame->pc = walk->dump->pending_returns[walk->nr_pending++];
	frame->registers[CFI_RETURN_ADDRESS] = frame->pc;
	frame->in_dump &= ~(1u << CFI_RETURN_ADDRESS);
	return get_rule(walk, frame->pc - frame->is_return);
}

/* A function that was not called may find any value in the place of its return address. */
static bool is_begin(const struct walk *walk)
{
	return walk->is_made && !address_space_find(walk->space, walk->frame.pc);
}

/* More frames than fit: treated as the end of the dump. */
static enum step too_many_frames(struct walk *walk)
{
	walk->top = walk->frame.registers[CFI_STACK_POINTER];
	return STEP_TRUNCATED;
}

/* Notes how the caller of the @nth frame is found, before @rule is applied to it. */
static inline void note_frame(struct walk *walk, const struct cfi_rule *rule, size_t nth)
{
	const struct frame *frame = &walk->frame;
	struct walk_frame *noted;
	uint64_t base, return_at;

	if (!walk->is_plain)
		return;
	/* One element is left for the end. */
	walk->is_plain = nth < WALK_CACHE_MAX_FRAMES - 1 && !walk->is_made && !walk->nr_pending &&
			 (rule->kind == CFI_OUTERMOST || rule->kind == CFI_FRAME);
	if (!walk->is_plain)
		return;
	noted = &walk->unwinder->frames[nth];
	*noted = (struct walk_frame){.address = frame->pc};
	if (rule->kind == CFI_OUTERMOST)
		return;
	walk->is_plain = rule->cfa == CFA_REGISTER && rule->sp_is_cfa && !rule->signal_frame &&
			 rule->nr_saved == rule->nr_at_cfa && returns_by_cfa(rule);
	if (!walk->is_plain)
		return;
	base = register_value(walk, rule->cfa_register);
	return_at = base + (uint64_t)(int64_t)rule->cfa_offset - walk->dump_start +
		    (uint64_t)(int64_t)rule->saved[rule->nr_at_cfa - 1].offset;
	noted->return_at = (uint32_t)return_at;
	walk->is_plain = return_at < UINT32_MAX;
	if (rule->cfa_register == CFI_STACK_POINTER)
		return;
	noted->distance = base - walk->dump_start;
	if (frame->in_dump & (1u << rule->cfa_register)) {
		noted->base = BASE_WORD;
		noted->base_at = (uint32_t)frame->saved_at[rule->cfa_register];
	} else {
		noted->base = BASE_REGISTER;
		noted->base_at = rule->cfa_register;
	}
}

/* The frames outside an interrupted one are on its stack. */
static enum step end_of(const struct walk *walk, enum step step)
{
	return walk->is_elsewhere && step != STEP_OUTERMOST && step != STEP_NO_MEMORY
		       ? STEP_ELSEWHERE
		       : step;
}

static enum step walk_stack(struct walk *walk, struct unwound_stack *ret)
{
	struct frame *frame = &walk->frame;

	while (ret->nr < STACK_MAX_FRAMES) {
		const struct cfi_rule *rule = get_frame_rule(walk);
		enum step step;

		if (!rule)
			return STEP_NO_MEMORY;
		ret->addresses[ret->nr] = frame->pc;
		ret->is_call[ret->nr] = frame->is_return;
		note_frame(walk, rule, ret->nr);
		ret->nr++;

		if (rule->kind == CFI_FRAME)
			step = walk_by_rule(walk, rule);
		else if (rule->kind == CFI_OUTERMOST)
			step = STEP_OUTERMOST;
		else if (rule->kind == CFI_ELSEWHERE)
			step = STEP_ELSEWHERE;
		else if (rule->kind == CFI_ABSENT)
			step = walk_by_frame_pointer(walk);
		else
			step = STEP_TOO_COMPLEX;
		if (step == STEP_DONE && is_begin(walk))
			step = STEP_OUTERMOST;
		if (step != STEP_DONE)
			return end_of(walk, step);
		walk->is_made = false;
		/* The kernel jumped to a signal's trampoline; nothing called it. */
		if (rule->signal_frame)
			ret->is_call[ret->nr - 1] = false;
	}
	return too_many_frames(walk);
}

static void start_walk(struct walk *walk, const struct dump_registers *registers)
{
	const struct stack_dump *dump = walk->dump;
	struct frame *frame = &walk->frame;

	memcpy(frame->registers, registers->dwarf, sizeof(frame->registers));
	frame->known = (1u << CFI_NR_REGISTERS) - 1;
	frame->pc = registers->pc;
	frame->is_return = false;
	walk->dump_start = registers->sp;
	if (dump->bytes && dump->nr_bytes >= sizeof(uint64_t))
		walk->nr_offsets = dump->nr_bytes - sizeof(uint64_t) + 1;
	walk->is_plain = walk_cache_is_used(&walk->unwinder->walks);
}

/* Caches a walk that rules have made, so that the next such dump needs no rules. */
static void remember_walk(struct walk *walk, const struct unwound_stack *stack)
{
	struct rule_unwinder *unwinder = walk->unwinder;
	struct walk_frame *frames = unwinder->frames;
	size_t nr = stack->nr;

	if (stack->complete) {
		if (walk->frame.pc == 0) /* a return address, but no frame */
			frames[nr++] = (struct walk_frame){0};
		frames[nr - 1].is_last = true;
		frames[nr - 1].distance = stack->top - walk->dump_start;
	}
	walk_cache_add(&unwinder->walks, walk->space->generation, walk->dump, &unwinder->registers,
		       frames, nr);
}

/* Walks up the stack. Returns as unwinder_ops.unwind(). */
static int make_walk(struct rule_unwinder *unwinder, const struct address_space *space,
		     const struct stack_dump *dump, struct unwound_stack *ret)
{
	struct walk walk = {.unwinder = unwinder, .space = space, .dump = dump};
	enum step step;

	start_walk(&walk, &unwinder->registers);
	step = walk_stack(&walk, ret);
	ret->elsewhere = step == STEP_ELSEWHERE;
	ret->complete = step == STEP_OUTERMOST || ret->elsewhere;
	ret->truncated = step == STEP_TRUNCATED;
	ret->top = walk.top;
	if (!ret->truncated && !walk.top && (walk.frame.known & (1u << CFI_STACK_POINTER)))
		ret->top = walk.frame.registers[CFI_STACK_POINTER];
	if (step == STEP_NO_MEMORY)
		return -ENOMEM;
	if (walk.is_plain && (ret->complete || ret->truncated))
		remember_walk(&walk, ret);
	return step == STEP_TOO_COMPLEX ? -EOPNOTSUPP : 0;
}

static int rule_unwinder_unwind(void *self, const struct address_space *space,
				const struct stack_dump *dump, struct unwound_stack *ret)
{
	struct rule_unwinder *unwinder = self;
	struct dump_registers *registers = &unwinder->registers;
	int err = dump_registers_decode(dump, registers);

	if (!err && space && registers->machine == EM_X86_64 &&
	    walk_cache_find(&unwinder->walks, space->generation, dump, registers, ret))
		return 0;
	ret->nr = 0;
	ret->complete = ret->truncated = false;
	ret->top = 0;
	if (err)
		return 0;
	if (registers->machine != EM_X86_64)
		return -EOPNOTSUPP;
	if (space)
		return make_walk(unwinder, space, dump, ret);
	/* Unwinding cannot start, but the instruction pointer is known. */
	ret->addresses[0] = registers->pc;
	ret->is_call[0] = false;
	ret->nr = 1;
	return 0;
}

static void rule_unwinder_deinit(void *self)
{
	struct rule_unwinder *unwinder = self;

	cfi_rules_deinit(&unwinder->rules);
	walk_cache_deinit(&unwinder->walks);
	free(unwinder->cache);
}

const struct unwinder_ops rule_unwinder_ops = {
	.unwind = rule_unwinder_unwind,
	.deinit = rule_unwinder_deinit,
};
