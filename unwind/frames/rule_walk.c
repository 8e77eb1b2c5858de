/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/frames/rule_walk.h"

#include "unwind/frames/dump_registers.h"
#include "unwind/modules/module_segments.h"

#define CACHE_LINE_BYTES     64
#define FETCH_AHEAD_BYTES    1024

#define SIGNAL_CONTEXT_BYTES 1024	/* siginfo_t and ucontext_t, which unwinding needs */
#define SIGNAL_MAX_BYTES     (64 << 10) /* of a signal's frame, with all registers */

/* True if the file that is mapped there may have the byte, if it has @span bytes of addresses. */
static bool may_have(const struct mapping *mapping, uint64_t span, uint64_t address)
{
	/* No sums, which wrap: a file may claim any span. */
	return address < mapping->start	 ? mapping->start - address <= span
	       : address >= mapping->end ? address - mapping->end < span
					 : true;
}

/*
 * Explains a word that cannot be read. libdwfl's reader also knows memory that a module's file
 * holds. Finding that file is left to it, because only broken stacks lead there.
 */
static enum step unreadable(struct walk *walk, uint64_t address)
{
	const struct mapping *near[2];

	if (dump_ends_before(walk->dump, walk->dump_start, address)) {
		walk->top = address + sizeof(address);
		return STEP_TRUNCATED;
	}
	for (size_t i = address_space_neighbours(walk->space, address, near); i--;) {
		if (near[i]->module->jit_pid)
			continue; /* no file holds it */
		if (may_have(near[i], module_span(near[i]->module), address))
			return STEP_TOO_COMPLEX;
	}
	return STEP_LOST;
}

static enum step find_cfa(struct walk *walk, const struct cfi_rule *rule, uint64_t *ret)
{
	const struct frame *frame = &walk->frame;
	uint64_t address;

	if (!get_register(walk, rule->cfa_register, rule->cfa_offset, ret))
		return STEP_LOST;
	if (rule->cfa == CFA_MEMORY) {
		address = *ret;
		if (!read_word(walk, address, ret))
			return unreadable(walk, address);
		*ret += (uint64_t)(int64_t)rule->cfa_addend;
	} else if (rule->cfa == CFA_PLT) {
		if (!(frame->known & (1u << CFI_RETURN_ADDRESS)))
			return STEP_LOST;
		if ((register_value(walk, CFI_RETURN_ADDRESS) & 15) >= (uint64_t)rule->cfa_addend)
			*ret += sizeof(uint64_t);
	}
	return STEP_DONE;
}

/*
 * Restores the caller's registers that are not SAVED_AT_CFA. Those that cannot be found are
 * unknown.
 */
static void restore_others(const struct walk *walk, const struct cfi_rule *rule, uint64_t cfa,
			   struct frame *caller)
{
	for (unsigned i = rule->nr_at_cfa; i < rule->nr_saved; i++) {
		const struct cfi_saved *saved = &rule->saved[i];
		uint64_t value;
		bool known = true;

		if (saved->where == VALUE_OF_CFA)
			value = cfa + (uint64_t)(int64_t)saved->offset;
		else
			known = get_register(walk, saved->base, saved->offset, &value);
		if (known && saved->where == SAVED_AT_REGISTER)
			known = read_word(walk, value, &value);
		if (known)
			set_register(caller, saved->number, value);
	}
}

/*
 * Explains why the return address is unknown. @walk is still in the callee, or only the CFA
 * matters.
 */
static enum step explain_loss(struct walk *walk, const struct cfi_rule *rule, uint64_t cfa)
{
	uint64_t address;

	for (unsigned i = 0; i < rule->nr_saved; i++) {
		const struct cfi_saved *saved = &rule->saved[i];

		if (saved->number != CFI_RETURN_ADDRESS)
			continue;
		if (saved->where == SAVED_AT_CFA)
			return unreadable(walk, cfa + (uint64_t)(int64_t)saved->offset);
		if (saved->where == SAVED_AT_REGISTER &&
		    get_register(walk, saved->base, saved->offset, &address))
			return unreadable(walk, address);
	}
	return STEP_LOST;
}

/*
 * Compilers do not record pops in an epilogue: by the CFI, a popped register is still saved, below
 * the stack pointer, where the dump begins. The register already has its value again.
 */
static inline bool is_restored(const struct walk *walk, const struct cfi_saved *saved,
			       uint64_t address)
{
	return address < walk->dump_start && saved->number != CFI_RETURN_ADDRESS;
}

/* True if the dump holds all registers that the rule saves at the CFA. */
static inline bool all_in_dump(const struct walk *walk, const struct cfi_rule *rule, uint64_t cfa)
{
	uint64_t offset = cfa - walk->dump_start;
	uint64_t first = offset + (uint64_t)(int64_t)rule->lowest;
	uint64_t last = offset + (uint64_t)(int64_t)rule->highest;

	return first <= last && last < walk->nr_offsets;
}

/*
 * Notes where the registers saved at the CFA are, all of which the dump holds. Returns their bits.
 */
static inline uint32_t note_all(struct walk *walk, const struct cfi_rule *rule, uint64_t cfa)
{
	struct frame *frame = &walk->frame;
	uint64_t offset = cfa - walk->dump_start;

	for (unsigned i = 0, nr = rule->nr_at_cfa; i < nr; i++)
		frame->saved_at[rule->saved[i].number] =
			offset + (uint64_t)(int64_t)rule->saved[i].offset;
	frame->in_dump |= rule->at_cfa;
	return rule->at_cfa;
}

/*
 * As note_all(), for a dump that may lack some. @known_before: the registers that the callee knew.
 */
static uint32_t note_some(struct walk *walk, const struct cfi_rule *rule, uint64_t cfa,
			  uint32_t known_before)
{
	struct frame *frame = &walk->frame;
	uint32_t known = 0;

	for (unsigned i = 0; i < rule->nr_at_cfa; i++) {
		const struct cfi_saved *saved = &rule->saved[i];
		uint64_t address = cfa + (uint64_t)(int64_t)saved->offset;
		uint32_t bit = 1u << saved->number;

		if (address - walk->dump_start < walk->nr_offsets) {
			frame->saved_at[saved->number] = address - walk->dump_start;
			frame->in_dump |= bit;
			known |= bit;
		} else if (is_restored(walk, saved, address)) {
			known |= known_before & bit;
		}
	}
	return known;
}

/*
 * The next frame cannot be looked up before this frame's return address has come from memory, and
 * the dump is in no cache any more. So the dump is prefetched some frames ahead, each cache line
 * once. Prefetching at a fixed distance from each frame would repeat lines at small frames and skip
 * some at large ones.
 */
static inline void fetch_ahead(struct walk *walk, uint64_t cfa)
{
	size_t offset = cfa - walk->dump_start, end = offset + FETCH_AHEAD_BYTES;

	if (offset >= walk->dump->nr_bytes)
		return;
	if (end > walk->dump->nr_bytes)
		end = walk->dump->nr_bytes;
	for (; walk->fetched < end; walk->fetched += CACHE_LINE_BYTES)
		__builtin_prefetch(walk->dump->bytes + walk->fetched);
}

/*
 * A signal's frame lies right below what it interrupted, unless the handler has a stack of its own
 * (SA_ONSTACK). The registers of AVX-512 and AMX are between them (Linux 6.18,
 * arch/x86/kernel/signal.c, get_sigframe()).
 */
static void note_signal(struct walk *walk, uint64_t old_sp)
{
	uint64_t sp = walk->frame.registers[CFI_STACK_POINTER];

	if (sp - walk->dump_start < walk->dump->nr_bytes ||
	    (sp > old_sp && sp - old_sp <= SIGNAL_MAX_BYTES))
		return;
	walk->is_elsewhere = true;
	walk->top = old_sp + SIGNAL_CONTEXT_BYTES;
}

/*
 * The stack pointer must rise, which ends every cycle. Only a signal may have switched to another
 * stack.
 */
enum step walk_by_rule(struct walk *walk, const struct cfi_rule *rule)
{
	struct frame *frame = &walk->frame;
	uint64_t old_sp = frame->registers[CFI_STACK_POINTER], cfa;
	bool had_sp = frame->known & (1u << CFI_STACK_POINTER);
	enum step step = find_cfa(walk, rule, &cfa);

	if (step != STEP_DONE)
		return step;

	fetch_ahead(walk, cfa);
	uint32_t known_before = frame->known, known = known_before & rule->same;
	if (rule->nr_saved > rule->nr_at_cfa) {
		struct frame caller = *frame;

		caller.known = known;
		restore_others(walk, rule, cfa, &caller);
		if (!returns_by_cfa(rule) && !(caller.known & (1u << CFI_RETURN_ADDRESS)))
			return explain_loss(walk, rule, cfa);
		*frame = caller;
		known = caller.known;
	}
	known |= all_in_dump(walk, rule, cfa) ? note_all(walk, rule, cfa)
					      : note_some(walk, rule, cfa, known_before);
	frame->known = known;
	if (rule->sp_is_cfa)
		set_register(frame, CFI_STACK_POINTER, cfa);
	else
		load_register(walk, CFI_STACK_POINTER);
	if (!(known & (1u << CFI_RETURN_ADDRESS)))
		return explain_loss(walk, rule, cfa);
	if (had_sp && !rule->signal_frame && frame->registers[CFI_STACK_POINTER] <= old_sp)
		return STEP_LOST;
	if (had_sp && rule->signal_frame)
		note_signal(walk, old_sp);

	frame->pc = register_value(walk, CFI_RETURN_ADDRESS);
	frame->is_return = !rule->signal_frame;
	return frame->pc ? STEP_DONE : STEP_OUTERMOST;
}

/*
 * True if the frame is on the stack that the kernel made: argc, argv, a null pointer (System V ABI,
 * AMD64 supplement, 3.4.1). There the dynamic linker, whose start has no call frame information,
 * runs the libraries' initialisers. It clears the frame pointer first (glibc 2.36,
 * sysdeps/x86_64/dl-machine.h).
 */
static bool is_initial_stack(struct walk *walk)
{
	const struct frame *frame = &walk->frame;
	uint64_t sp = frame->registers[CFI_STACK_POINTER], argc, word;

	if (!(frame->known & (1u << CFI_STACK_POINTER)) || !read_word(walk, sp, &argc) || !argc ||
	    argc >= DUMP_MAX_STACK_BYTES)
		return false;
	walk->top = sp + 16 + 8 * argc;
	return read_word(walk, sp + 8, &word) && word > sp &&
	       read_word(walk, sp + 8 + 8 * argc, &word) && !word;
}

/*
 * Code without call frame information is assumed to keep a frame pointer, as libdwfl does (elfutils
 * 0.188, backends/x86_64_unwind.c).
 */
enum step walk_by_frame_pointer(struct walk *walk)
{
	struct frame *frame = &walk->frame;
	uint64_t fp = register_value(walk, CFI_FRAME_POINTER), caller_fp, pc;

	if (!(frame->known & (1u << CFI_FRAME_POINTER)))
		return STEP_LOST;
	if (!fp)
		return is_initial_stack(walk) ? STEP_OUTERMOST : STEP_LOST;
	if (!read_word(walk, fp, &caller_fp))
		caller_fp = 0;
	if (!read_word(walk, fp + sizeof(fp), &pc))
		return unreadable(walk, fp + sizeof(fp));
	if ((frame->known & (1u << CFI_STACK_POINTER)) &&
	    fp + 2 * sizeof(fp) <= frame->registers[CFI_STACK_POINTER])
		return STEP_LOST;

	frame->known = 0;
	set_register(frame, CFI_FRAME_POINTER, caller_fp);
	set_register(frame, CFI_STACK_POINTER, fp + 2 * sizeof(fp));
	frame->pc = pc;
	frame->is_return = true;
	/* A zero is more often a random value than an end. */
	return pc ? STEP_DONE : STEP_LOST;
}
