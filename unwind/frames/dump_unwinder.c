/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/frames/dump_unwinder.h"

#include "unwind/frames/dump_registers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CACHE_LINE_BYTES  64
#define FETCH_AHEAD_BYTES 1024

/* How one step, or the whole of it, went. */
enum step {
	STEP_DONE,	 /* there is a caller */
	STEP_OUTERMOST,	 /* there is none */
	STEP_TRUNCATED,	 /* there may be one, above what was dumped */
	STEP_LOST,	 /* nothing says where it is */
	STEP_NEEDS_DWFL, /* too much for a rule */
	STEP_NO_MEMORY,
};

_Static_assert(CFI_NR_REGISTERS <= DUMP_MAX_DWARF_REGISTERS, "registers do not fit");

/*
 * A frame: the registers that are known, and how its address is to be looked up. Of the registers
 * that a frame's function saved, few are ever asked for: they stay in the dump until then. The
 * stack pointer is read at once.
 */
struct frame {
	uint64_t registers[CFI_NR_REGISTERS];
	size_t saved_at[CFI_NR_REGISTERS]; /* places in the dump */
	uint32_t known;			   /* as bits */
	uint32_t in_dump;		   /* as bits: read at @saved_at, not from @registers */
	uint64_t pc;
	bool is_return; /* @pc follows a call */
};

struct walk {
	struct dump_unwinder *unwinder;
	const struct address_space *space;
	const struct stack_dump *dump;
	uint64_t dump_start;
	size_t nr_places;  /* of the dump, from its start, where a word can be read */
	size_t fetched;	   /* all lines of the dump before that place have been */
	size_t nr_pending; /* of the pending returns, met on the way */
	uint64_t top;	   /* as in struct unwound_stack */
	bool is_made;	   /* nobody called this frame's function */
	struct frame frame;

	bool is_plain; /* the cache of walks takes walks now, and can express this one */
};

int dump_unwinder_init(struct dump_unwinder *unwinder, struct module_table *modules,
		       struct debuginfo *debuginfo, bool own_vdso)
{
	*unwinder = (struct dump_unwinder){0};
	unwinder->cache = calloc(DUMP_UNWINDER_CACHE_SIZE, sizeof(*unwinder->cache));
	if (!unwinder->cache || walk_cache_init(&unwinder->walks)) {
		free(unwinder->cache);
		unwinder->cache = NULL;
		return -ENOMEM;
	}
	cfi_rules_init(&unwinder->rules, modules, debuginfo, own_vdso);
	dwfl_unwinder_init(&unwinder->dwfl, modules, debuginfo);
	return 0;
}

void dump_unwinder_deinit(struct dump_unwinder *unwinder)
{
	dwfl_unwinder_deinit(&unwinder->dwfl);
	cfi_rules_deinit(&unwinder->rules);
	walk_cache_deinit(&unwinder->walks);
	free(unwinder->cache);
}

/* The rule for the code at @address, by way of its mapping and module. */
static int look_up_rule(struct dump_unwinder *unwinder, const struct address_space *space,
			uint64_t address, const struct cfi_rule **ret)
{
	static const struct cfi_rule absent = {.kind = CFI_ABSENT};
	const struct mapping *mapping = address_space_find(space, address);
	int err = 0;

	*ret = &absent;
	if (mapping)
		err = cfi_rules_find(&unwinder->rules, mapping->module,
				     address - mapping->start + mapping->file_offset, ret);
	if (unwinder->epoch != unwinder->rules.epoch) {
		memset(unwinder->cache, 0, DUMP_UNWINDER_CACHE_SIZE * sizeof(*unwinder->cache));
		unwinder->epoch = unwinder->rules.epoch;
	}
	return err;
}

/* The rule for the code at @address. NULL: out of memory. */
static inline const struct cfi_rule *get_rule(struct walk *walk, uint64_t address)
{
	struct dump_unwinder *unwinder = walk->unwinder;
	uint64_t generation = walk->space->generation;
	size_t slot = hash_mix(address, 0x9e3779b97f4a7c15 ^ generation);
	struct cached_rule *cached = &unwinder->cache[slot & (DUMP_UNWINDER_CACHE_SIZE - 1)];
	const struct cfi_rule *rule;

	if (cached->address == address && cached->generation == generation)
		return cached->rule;
	if (look_up_rule(unwinder, walk->space, address, &rule))
		return NULL;
	*cached = (struct cached_rule){.address = address, .generation = generation, .rule = rule};
	return rule;
}

static inline bool read_word(const struct walk *walk, uint64_t address, uint64_t *ret)
{
	uint64_t place = address - walk->dump_start;

	if (place >= walk->nr_places)
		return false;
	memcpy(ret, walk->dump->bytes + place, sizeof(*ret));
	return true;
}

/*
 * What a word that can't be read means. libdwfl's reader also knows memory that a module's file
 * holds; which file's data lies where is not looked into here, as only broken stacks lead there.
 */
static enum step unreadable(struct walk *walk, uint64_t address)
{
	const struct mapping *near[2];

	if (dump_ends_before(walk->dump, walk->dump_start, address)) {
		walk->top = address + sizeof(address);
		return STEP_TRUNCATED;
	}
	for (size_t i = address_space_neighbours(walk->space, address, near); i--;) {
		uint64_t span = module_span(near[i]->module);

		if (near[i]->module->jit_pid)
			continue; /* no file that could hold it */
		if (address >= near[i]->start - span && address < near[i]->end + span)
			return STEP_NEEDS_DWFL;
	}
	return STEP_LOST;
}

/* The value of a register: any, if it is not known. */
static inline uint64_t register_value(const struct walk *walk, uint8_t number)
{
	const struct frame *frame = &walk->frame;
	uint64_t value = frame->registers[number];

	if (frame->in_dump & (1u << number))
		memcpy(&value, walk->dump->bytes + frame->saved_at[number], sizeof(value));
	return value;
}

static inline bool get_register(const struct walk *walk, uint8_t number, int32_t offset,
				uint64_t *ret)
{
	*ret = register_value(walk, number) + (uint64_t)(int64_t)offset;
	return walk->frame.known & (1u << number);
}

static inline void set_register(struct frame *frame, uint8_t number, uint64_t value)
{
	frame->registers[number] = value;
	frame->known |= 1u << number;
	frame->in_dump &= ~(1u << number);
}

/* Reads the value now, if it is in the dump still. */
static inline void load_register(struct walk *walk, uint8_t number)
{
	struct frame *frame = &walk->frame;

	frame->registers[number] = register_value(walk, number);
	frame->in_dump &= ~(1u << number);
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

/* What the caller's registers are found to be: those that can't be found are unknown. */
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

/* Why the return address is not known. @walk is still in the callee, or only the CFA matters. */
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

/* The return address has the highest number, and each part of @saved goes by that. */
static inline bool returns_by_cfa(const struct cfi_rule *rule)
{
	return rule->nr_at_cfa && rule->saved[rule->nr_at_cfa - 1].number == CFI_RETURN_ADDRESS;
}

/*
 * In an epilogue, compilers do not say that a register has been popped: it is still saved by the
 * CFI, below the stack pointer, where the dump ends. The register has the value again.
 */
static inline bool is_restored(const struct walk *walk, const struct cfi_saved *saved,
			       uint64_t address)
{
	return address < walk->dump_start && saved->number != CFI_RETURN_ADDRESS;
}

/* Whether the dump holds all that the rule says is saved at the CFA. */
static inline bool all_in_dump(const struct walk *walk, const struct cfi_rule *rule, uint64_t cfa)
{
	uint64_t place = cfa - walk->dump_start;
	uint64_t first = place + (uint64_t)(int64_t)rule->lowest;
	uint64_t last = place + (uint64_t)(int64_t)rule->highest;

	return first <= last && last < walk->nr_places;
}

/* Notes where these registers are, and returns them, as bits: all of them are in the dump. */
static inline uint32_t note_all(struct walk *walk, const struct cfi_rule *rule, uint64_t cfa)
{
	struct frame *frame = &walk->frame;
	uint64_t place = cfa - walk->dump_start;

	for (unsigned i = 0, nr = rule->nr_at_cfa; i < nr; i++)
		frame->saved_at[rule->saved[i].number] =
			place + (uint64_t)(int64_t)rule->saved[i].offset;
	frame->in_dump |= rule->at_cfa;
	return rule->at_cfa;
}

/* As note_all(), but not all of them need be there. @known_before: what the callee knew. */
static uint32_t note_some(struct walk *walk, const struct cfi_rule *rule, uint64_t cfa,
			  uint32_t known_before)
{
	struct frame *frame = &walk->frame;
	uint32_t known = 0;

	for (unsigned i = 0; i < rule->nr_at_cfa; i++) {
		const struct cfi_saved *saved = &rule->saved[i];
		uint64_t address = cfa + (uint64_t)(int64_t)saved->offset;
		uint32_t bit = 1u << saved->number;

		if (address - walk->dump_start < walk->nr_places) {
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
 * Each frame's return address must have come from memory before the next frame can be looked for,
 * and a dump that was read some time ago is in no cache. So it is fetched some frames ahead, each
 * line once: were they fetched at a distance from each frame, small frames would repeat some, and
 * large ones leave some out.
 */
static inline void fetch_ahead(struct walk *walk, uint64_t cfa)
{
	size_t place = cfa - walk->dump_start, end = place + FETCH_AHEAD_BYTES;

	if (place >= walk->dump->nr_bytes)
		return;
	if (end > walk->dump->nr_bytes)
		end = walk->dump->nr_bytes;
	for (; walk->fetched < end; walk->fetched += CACHE_LINE_BYTES)
		__builtin_prefetch(walk->dump->bytes + walk->fetched);
}

/*
 * Goes to the caller by @rule. The stack pointer must rise, which ends every cycle; only a signal
 * may have come on another stack.
 */
static enum step apply_rule(struct walk *walk, const struct cfi_rule *rule)
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

	frame->pc = register_value(walk, CFI_RETURN_ADDRESS);
	frame->is_return = !rule->signal_frame;
	return frame->pc ? STEP_DONE : STEP_OUTERMOST;
}

/*
 * The dynamic linker, which has no call frame information where it begins, runs the libraries'
 * initialisers on the stack that the kernel made: argc, argv, a null pointer (System V ABI, AMD64
 * supplement, 3.4.1). It clears the frame pointer first (glibc 2.36,
 * sysdeps/x86_64/dl-system_wide.h).
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
 * Code without call frame information: as libdwfl, we take it to keep a frame pointer (elfutils
 * 0.188, backends/x86_64_unwind.c).
 */
static enum step follow_frame_pointer(struct walk *walk)
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
	/* Zeros are more often what the register pointed to by chance than an end. */
	return pc ? STEP_DONE : STEP_LOST;
}

/*
 * A return probe's trampoline is in the place of the return address (Linux 6.18,
 * kernel/events/uprobes.c, prepare_uretprobe()): nothing else was changed. The kernel tells of the
 * trampoline's mapping only if it was there before the recording.
 */
static bool is_trampoline(const struct walk *walk)
{
	const struct frame *frame = &walk->frame;
	const struct mapping *mapping = address_space_find(walk->space, frame->pc);

	return frame->is_return && (!mapping || strcmp(mapping->module->path, "[uprobes]") == 0);
}

/*
 * No call is before the address that the frame returns to, but a function begins there: the stack
 * was made by hand, so that its first function returns to where it is ended (makecontext() does).
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

/* The rule for the frame, once its address is the true one. NULL: out of memory. */
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

/* What a function that nobody called finds in the place of its return address is anything. */
static bool is_begin(const struct walk *walk)
{
	return walk->is_made && !address_space_find(walk->space, walk->frame.pc);
}

/* More frames than are kept: as if the dump had ended there. */
static enum step too_many_frames(struct walk *walk)
{
	walk->top = walk->frame.registers[CFI_STACK_POINTER];
	return STEP_TRUNCATED;
}

/* Notes, before @rule is applied to the @nth frame, what it takes to find the next one. */
static inline void note_frame(struct walk *walk, const struct cfi_rule *rule, size_t nth)
{
	const struct frame *frame = &walk->frame;
	struct walk_frame *noted;
	uint64_t base, return_at;

	if (!walk->is_plain)
		return;
	/* One place is left for the end. */
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
			step = apply_rule(walk, rule);
		else if (rule->kind == CFI_OUTERMOST)
			step = STEP_OUTERMOST;
		else if (rule->kind == CFI_ABSENT)
			step = follow_frame_pointer(walk);
		else
			step = STEP_NEEDS_DWFL;
		if (step == STEP_DONE && is_begin(walk))
			step = STEP_OUTERMOST;
		if (step != STEP_DONE)
			return step;
		walk->is_made = false;
		/* The kernel jumped to a signal's trampoline: it was not called, either. */
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
		walk->nr_places = dump->nr_bytes - sizeof(uint64_t) + 1;
	walk->is_plain = walk_cache_is_used(&walk->unwinder->walks);
}

/* Keeps a walk that rules have made: the next dump of that kind needs no rules. */
static void remember_walk(struct walk *walk, const struct unwound_stack *stack)
{
	struct dump_unwinder *unwinder = walk->unwinder;
	struct walk_frame *frames = unwinder->frames;
	size_t nr = stack->nr;

	if (stack->complete) {
		if (walk->frame.pc == 0) /* a return address, too, but no frame */
			frames[nr++] = (struct walk_frame){0};
		frames[nr - 1].is_last = true;
		frames[nr - 1].distance = stack->top - walk->dump_start;
	}
	walk_cache_add(&unwinder->walks, walk->space->generation, walk->dump, &unwinder->registers,
		       frames, nr);
}

/* Walks the stack up. Returns 0, or 1: it is for libdwfl to do; or -ENOMEM. */
static int make_walk(struct dump_unwinder *unwinder, const struct address_space *space,
		     const struct stack_dump *dump, struct unwound_stack *ret)
{
	struct walk walk = {.unwinder = unwinder, .space = space, .dump = dump};
	enum step step;

	start_walk(&walk, &unwinder->registers);
	step = walk_stack(&walk, ret);
	ret->complete = step == STEP_OUTERMOST;
	ret->truncated = step == STEP_TRUNCATED;
	ret->top = walk.top;
	if (!ret->truncated && !walk.top && (walk.frame.known & (1u << CFI_STACK_POINTER)))
		ret->top = walk.frame.registers[CFI_STACK_POINTER];
	if (step == STEP_NO_MEMORY)
		return -ENOMEM;
	if (walk.is_plain && (ret->complete || ret->truncated))
		remember_walk(&walk, ret);
	return step == STEP_NEEDS_DWFL;
}

/* Returns 0, or 1: it is for libdwfl to do; or -ENOMEM. */
static int unwind_by_rules(struct dump_unwinder *unwinder, const struct address_space *space,
			   const struct stack_dump *dump, struct unwound_stack *ret)
{
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
		return 1;
	if (space)
		return make_walk(unwinder, space, dump, ret);
	/* No way to begin, but where it was is known. */
	ret->addresses[0] = registers->pc;
	ret->is_call[0] = false;
	ret->nr = 1;
	return 0;
}

int dump_unwinder_unwind(struct dump_unwinder *unwinder, const struct address_space *space,
			 const struct stack_dump *dump, struct unwound_stack *ret)
{
	int result = unwind_by_rules(unwinder, space, dump, ret);

	if (result > 0) {
		unwinder->stats.by_dwfl++;
		result = dwfl_unwinder_unwind(&unwinder->dwfl, space, dump, ret);
	}
	if (result)
		return result;
	unwinder->stats.dumps++;
	unwinder->stats.frames += ret->nr;
	unwinder->stats.truncated += ret->truncated;
	unwinder->stats.lost += !ret->complete && !ret->truncated;
	return 0;
}
