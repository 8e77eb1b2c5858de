/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/frames/arm64_unwinder.h"

#include "common/scope.h"
#include "unwind/frames/dump_registers.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

#define NR_REGISTERS (ARM64_SP + 1)

struct arm64_frame {
	uint64_t registers[NR_REGISTERS];
	uint32_t known; /* bits of registers */
	uint64_t pc;
	bool is_return; /* @pc follows a call */
};

struct arm64_walk {
	struct cfi_rules *rules;
	const struct address_space *space;
	const struct stack_dump *dump;
	uint64_t dump_start;
	size_t nr_pending; /* pending returns used so far */
	struct arm64_frame frame;
	uint64_t top;	   /* as in struct unwound_stack */
	bool is_elsewhere; /* a signal has interrupted this frame on another stack */
};

enum arm64_step {
	ARM64_DONE,
	ARM64_OUTERMOST,
	ARM64_TRUNCATED,
	ARM64_LOST,
	ARM64_ELSEWHERE,
	ARM64_TOO_COMPLEX,
	ARM64_NO_MEMORY,
};

/*
 * Where a signal's frame, which begins at the stack pointer, has x0 to x30, sp and pc: struct
 * rt_sigframe, arch/arm64/kernel/signal.c, and asm/sigcontext.h (Linux 6.1).
 */
#define SIGNAL_REGISTERS_AT  312
#define SIGNAL_CONTEXT_BYTES (SIGNAL_REGISTERS_AT + (NR_REGISTERS + 1) * 8)
#define SIGNAL_MAX_BYTES     0x20000 /* with SME's registers */

/* Sizes of user addresses that Linux can be built for (arch/arm64/Kconfig, ARM64_VA_BITS). */
static const uint8_t address_bits[] = {52, 48, 47, 42, 39, 36};

/*
 * The address that @address, which may be signed, stands for. The recording does not tell how many
 * bits an address has, so the result is the longest one that @space maps, or else has 48 bits. The
 * code is in bits 54 and below, down to the size of an address (ptrauth_user_pac_mask(),
 * arch/arm64/include/asm/pointer_auth.h, Linux 6.1); the top byte is the program's own (TBI).
 */
static uint64_t code_address(const struct address_space *space, uint64_t address)
{
	for (size_t i = 0; i < ARRAY_SIZE(address_bits); i++) {
		uint64_t bare = address & ((1ull << address_bits[i]) - 1);

		if (address_space_find(space, bare))
			return bare;
	}
	return address & ((1ull << 48) - 1);
}

static bool is_known(const struct arm64_frame *frame, unsigned number)
{
	return frame->known & (1u << number);
}

static void set_register(struct arm64_frame *frame, unsigned number, uint64_t value)
{
	frame->registers[number] = value;
	frame->known |= 1u << number;
}

static bool read_word(const struct arm64_walk *walk, uint64_t address, uint64_t *ret)
{
	return dump_read_u64(walk->dump, walk->dump_start, address, ret) == 0;
}

static enum arm64_step unreadable(struct arm64_walk *walk, uint64_t address)
{
	if (!dump_ends_before(walk->dump, walk->dump_start, address))
		return ARM64_LOST;
	walk->top = address + sizeof(address);
	return ARM64_TRUNCATED;
}

/*
 * Goes to the caller at @address, which may be signed. A return probe has replaced the address by
 * its trampoline's, which is in no file; the true one is the next of the pending returns.
 */
static enum arm64_step return_to(struct arm64_walk *walk, uint64_t address)
{
	struct arm64_frame *frame = &walk->frame;
	const struct mapping *mapping;

	frame->pc = code_address(walk->space, address);
	frame->is_return = true;
	mapping = address_space_find(walk->space, frame->pc);
	if (walk->nr_pending < walk->dump->nr_pending_returns &&
	    (!mapping || strcmp(mapping->module->path, "[uprobes]") == 0))
		frame->pc = walk->dump->pending_returns[walk->nr_pending++];
	return frame->pc ? ARM64_DONE : ARM64_OUTERMOST;
}

/* Restores the registers that the rule saves. Those that the dump lacks are unknown. */
static void restore_saved(struct arm64_walk *walk, const struct cfi_rule *rule, uint64_t cfa)
{
	struct arm64_frame *frame = &walk->frame;
	uint32_t known_before = frame->known;
	uint64_t value;

	frame->known &= rule->same;
	for (unsigned i = 0; i < rule->nr_saved; i++) {
		const struct cfi_saved *saved = &rule->saved[i];
		uint64_t address = cfa + (uint64_t)(int64_t)saved->offset;

		if (read_word(walk, address, &value))
			set_register(frame, saved->number, value);
		else if (address < walk->dump_start)
			/* Popped already: compilers do not always record that. */
			frame->known |= known_before & (1u << saved->number);
	}
}

static uint64_t link_slot(const struct cfi_rule *rule, uint64_t cfa)
{
	for (unsigned i = 0; i < rule->nr_saved; i++)
		if (rule->saved[i].number == ARM64_LINK)
			return cfa + (uint64_t)(int64_t)rule->saved[i].offset;
	return 0;
}

static enum arm64_step walk_by_rule(struct arm64_walk *walk, const struct cfi_rule *rule)
{
	struct arm64_frame *frame = &walk->frame;
	uint64_t old_sp = frame->registers[ARM64_SP], slot, cfa;
	/* Only the innermost frame may be that of a function that has no frame yet. */
	bool must_rise = is_known(frame, ARM64_SP) && frame->is_return && !rule->signal_frame;

	if (!is_known(frame, rule->cfa_register))
		return ARM64_LOST;
	cfa = frame->registers[rule->cfa_register] + (uint64_t)(int64_t)rule->cfa_offset;
	slot = link_slot(rule, cfa);
	/* After a call the link register has been overwritten. */
	if (!slot && frame->is_return)
		return ARM64_LOST;
	restore_saved(walk, rule, cfa);
	set_register(frame, ARM64_SP, cfa);
	if (!is_known(frame, ARM64_LINK))
		return slot ? unreadable(walk, slot) : ARM64_LOST;
	if (must_rise && cfa <= old_sp)
		return ARM64_LOST;
	return return_to(walk, frame->registers[ARM64_LINK]);
}

/*
 * True if the innermost function has no frame of its own: the link register has its return address.
 * After a return that register is old.
 */
static bool has_no_frame(const struct arm64_walk *walk)
{
	const struct arm64_frame *frame = &walk->frame;
	uint64_t link, saved;

	if (frame->is_return || walk->dump->returned_from || !is_known(frame, ARM64_LINK))
		return false;
	link = code_address(walk->space, frame->registers[ARM64_LINK]);
	if (link == frame->pc || !address_space_find(walk->space, link))
		return false;
	return !is_known(frame, ARM64_FP) ||
	       !read_word(walk, frame->registers[ARM64_FP] + 8, &saved) ||
	       code_address(walk->space, saved) != link;
}

/* A frame record is the caller's frame pointer and the return address (AAPCS64, 6.4.6). */
static enum arm64_step walk_by_frame_pointer(struct arm64_walk *walk)
{
	struct arm64_frame *frame = &walk->frame;
	uint64_t fp = frame->registers[ARM64_FP], caller_fp, link;

	if (has_no_frame(walk)) {
		frame->known &= ~(1u << ARM64_LINK);
		return return_to(walk, frame->registers[ARM64_LINK]);
	}
	if (!is_known(frame, ARM64_FP))
		return ARM64_LOST;
	/* The first function of a program or a thread clears it (glibc, musl). */
	if (!fp)
		return frame->is_return ? ARM64_OUTERMOST : ARM64_LOST;
	if (!read_word(walk, fp, &caller_fp))
		return unreadable(walk, fp);
	if (!read_word(walk, fp + 8, &link))
		return unreadable(walk, fp + 8);
	if (is_known(frame, ARM64_SP) && fp + 16 <= frame->registers[ARM64_SP])
		return ARM64_LOST;
	frame->known = 0;
	set_register(frame, ARM64_FP, caller_fp);
	set_register(frame, ARM64_SP, fp + 16);
	return return_to(walk, link);
}

/* Of the registers of a signal's frame. */
static bool read_interrupted(const struct arm64_walk *walk, unsigned number, uint64_t *ret)
{
	return read_word(
		walk, walk->frame.registers[ARM64_SP] + SIGNAL_REGISTERS_AT + number * 8ull, ret);
}

/* Goes from a signal's trampoline to what the signal has interrupted. */
static enum arm64_step walk_signal_frame(struct arm64_walk *walk)
{
	struct arm64_frame *frame = &walk->frame, interrupted = {0};
	const uint64_t old_sp = frame->registers[ARM64_SP];
	uint64_t value, sp;

	for (unsigned number = 0; number <= ARM64_SP; number++) {
		if (!read_interrupted(walk, number, &value))
			return unreadable(walk, old_sp + SIGNAL_CONTEXT_BYTES - 8);
		set_register(&interrupted, number, value);
	}
	if (!read_interrupted(walk, NR_REGISTERS, &interrupted.pc))
		return unreadable(walk, old_sp + SIGNAL_CONTEXT_BYTES - 8);
	sp = interrupted.registers[ARM64_SP];
	if (!read_word(walk, sp, &value) && sp - old_sp > SIGNAL_MAX_BYTES) {
		/* It was on another stack than the handler's. */
		walk->is_elsewhere = true;
		walk->top = old_sp + SIGNAL_CONTEXT_BYTES;
	}
	*frame = interrupted;
	return ARM64_DONE;
}

/*
 * True in the trampoline that ends a handler: all of the vdso but that has call frame information
 * since Linux 5.8 (arch/arm64/kernel/vdso/sigreturn.S).
 */
static bool is_signal_trampoline(const struct arm64_walk *walk, const struct mapping *mapping,
				 const struct cfi_rule *rule)
{
	return walk->frame.is_return && is_known(&walk->frame, ARM64_SP) && mapping &&
	       strcmp(mapping->module->path, "[vdso]") == 0 &&
	       (!rule || rule->kind == CFI_ABSENT || rule->signal_frame);
}

static enum arm64_step take_step(struct arm64_walk *walk, bool *ret_is_signal)
{
	const uint64_t pc = walk->frame.pc - walk->frame.is_return;
	const struct mapping *mapping = address_space_find(walk->space, pc);
	const struct cfi_rule *rule = NULL;

	*ret_is_signal = false;
	if (mapping && cfi_rules_find(walk->rules, mapping->module,
				      pc - mapping->start + mapping->file_offset, &rule))
		return ARM64_NO_MEMORY;
	if (is_signal_trampoline(walk, mapping, rule)) {
		*ret_is_signal = true;
		return walk_signal_frame(walk);
	}
	if (!rule || rule->kind == CFI_ABSENT || (rule->kind == CFI_FRAME && !rule->is_arm64))
		return walk_by_frame_pointer(walk);
	*ret_is_signal = rule->signal_frame;
	if (rule->kind == CFI_FRAME)
		return walk_by_rule(walk, rule);
	return rule->kind == CFI_OUTERMOST ? ARM64_OUTERMOST : ARM64_TOO_COMPLEX;
}

static enum arm64_step walk_stack(struct arm64_walk *walk, struct unwound_stack *ret)
{
	struct arm64_frame *frame = &walk->frame;

	while (ret->nr < STACK_MAX_FRAMES) {
		enum arm64_step step;
		bool is_signal;

		ret->addresses[ret->nr] = frame->pc;
		ret->is_call[ret->nr] = frame->is_return;
		ret->nr++;
		step = take_step(walk, &is_signal);
		if (step != ARM64_DONE)
			return walk->is_elsewhere && step != ARM64_OUTERMOST &&
					       step != ARM64_NO_MEMORY
				       ? ARM64_ELSEWHERE
				       : step;
		/* The kernel jumped to a signal's trampoline; nothing called it. */
		if (is_signal) {
			ret->is_call[ret->nr - 1] = false;
			frame->is_return = false;
		}
	}
	walk->top = frame->registers[ARM64_SP];
	return ARM64_TRUNCATED;
}

static int arm64_unwinder_unwind(void *self, const struct address_space *space,
				 const struct stack_dump *dump, struct unwound_stack *ret)
{
	struct arm64_unwinder *unwinder = self;
	struct arm64_walk walk = {.rules = unwinder->rules, .space = space, .dump = dump};
	struct dump_registers registers = {0};
	enum arm64_step step;

	if (dump_registers_decode(dump, &registers) || registers.machine != EM_AARCH64 || !space)
		return -EOPNOTSUPP;
	memcpy(walk.frame.registers, registers.dwarf, sizeof(walk.frame.registers));
	walk.frame.known = (uint32_t)dump->regs_mask; /* perf's numbers are DWARF's */
	walk.frame.pc = registers.pc;
	walk.dump_start = registers.sp;
	ret->nr = 0;
	step = walk_stack(&walk, ret);
	ret->elsewhere = step == ARM64_ELSEWHERE;
	ret->complete = step == ARM64_OUTERMOST || ret->elsewhere;
	ret->truncated = step == ARM64_TRUNCATED;
	ret->top = walk.top;
	if (!ret->truncated && !ret->elsewhere && is_known(&walk.frame, ARM64_SP))
		ret->top = walk.frame.registers[ARM64_SP];
	if (step == ARM64_NO_MEMORY)
		return -ENOMEM;
	return step == ARM64_TOO_COMPLEX ? -EOPNOTSUPP : 0;
}

static void arm64_unwinder_deinit(void *self)
{
}

const struct unwinder_ops arm64_unwinder_ops = {
	.unwind = arm64_unwinder_unwind,
	.deinit = arm64_unwinder_deinit,
};

void arm64_unwinder_init(struct arm64_unwinder *unwinder, struct cfi_rules *rules)
{
	unwinder->rules = rules;
}
