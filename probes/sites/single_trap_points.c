/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/sites/single_trap_points.h"

#include "common/scope.h"
#include "probes/x86/code_jumps.h"
#include "probes/x86/code_returns.h"
#include "probes/x86/frame_state.h"
#include "probes/elf/landing_pads.h"

#include <errno.h>

#define MAX_INSTRUCTIONS 4096
#define MAX_STEPS	 1000000 /* instructions, each as often as it is looked at */
#define MAX_CHOICES	 64

/* -ENOTSUP stands for "it cannot be proved" here. */

enum pass {
	FROM_ENTRY,
	FROM_CANDIDATE,
	NR_PASSES,
};

/* What a path from an instruction to the return makes of the block. */
struct outcome {
	uint16_t registers; /* as bits: those that hold it */
	bool is_null;
	bool is_known; /* false: not looked for yet */
};

/* An instruction that the entry reaches. */
struct node {
	uint32_t offset;
	struct instruction instruction;
	enum placement_class class;
	bool is_return, is_pending, is_banned, is_eligible, is_uncovered, is_chosen;
	bool wants_size, notes_size;
	uint8_t ways; /* in which it is reached: a bit for each of enum way's combinations */
	struct node *taken, *passed; /* what it leads to by jumping, and by going on; or NULL */
	struct outcome outcome;
	unsigned int seen; /* the last walk that came here */
	unsigned int rounds[NR_PASSES];
	struct frame_state states[NR_PASSES];
};

struct flow {
	const struct elf_function *function;
	const struct placement_kernel *kernel;
	uint32_t size_register;
	uint8_t *code;
	struct node **at;    /* by offset */
	struct node **nodes; /* in the order in which they were found */
	size_t nr_nodes;
	struct node **pending; /* each at most once */
	size_t nr_pending;
	unsigned int rounds[NR_PASSES], walk, nr_steps_left;
	struct code_returns returns;
	/* The candidate that is tried. */
	struct node *start;
	struct outcome outcome;
	size_t nr_returns;
};

static void flow_deinit(struct flow *flow)
{
	for (size_t i = 0; i < flow->nr_nodes; i++)
		free(flow->nodes[i]);
	free(flow->nodes);
	free(flow->pending);
	free(flow->at);
	free(flow->code);
}

static int flow_init(struct flow *flow, const struct elf_image *image,
		     const struct elf_function *function, const struct placement_kernel *kernel)
{
	size_t size = function->size_bytes;

	*flow = (struct flow){.function = function, .kernel = kernel, .nr_steps_left = MAX_STEPS};
	flow->code = malloc(size);
	flow->at = calloc(size, sizeof(struct node *));
	flow->nodes = calloc(MAX_INSTRUCTIONS, sizeof(struct node *));
	flow->pending = calloc(MAX_INSTRUCTIONS, sizeof(struct node *));
	if (!flow->code || !flow->at || !flow->nodes || !flow->pending)
		return -ENOMEM;
	code_returns_init(&flow->returns, image, function->offset);
	return elf_image_read(image, function->offset, flow->code, size);
}

static int find_node(struct flow *flow, uint64_t offset, struct node **ret)
{
	size_t size = flow->function->size_bytes;
	_cleanup_free_ struct node *node = NULL;

	if (offset >= size)
		return -ENOTSUP;
	*ret = flow->at[offset];
	if (*ret)
		return 0;
	if (flow->nr_nodes == MAX_INSTRUCTIONS)
		return -ENOTSUP;
	node = calloc(1, sizeof(*node));
	if (!node)
		return -ENOMEM;
	if (!instruction_decode(&node->instruction, flow->code + offset, size - offset))
		return -ENOTSUP;
	node->offset = (uint32_t)offset;
	node->class = placement_classify(&node->instruction, flow->code + offset, flow->kernel);
	flow->at[offset] = flow->nodes[flow->nr_nodes++] = *ret = node;
	node = NULL;
	return 0;
}

/* Control may come to @node with @state. */
static int reach(struct flow *flow, enum pass pass, struct node *node,
		 const struct frame_state *state)
{
	bool is_changed = true;

	if (pass == FROM_CANDIDATE && node == flow->start)
		return -ENOTSUP; /* some calls would pass it twice */
	if (node->rounds[pass] != flow->rounds[pass]) {
		node->rounds[pass] = flow->rounds[pass];
		node->states[pass] = *state;
	} else if (!frame_state_join(&node->states[pass], state, &is_changed)) {
		return -ENOTSUP;
	}
	if (!is_changed || node->is_pending)
		return 0;
	node->is_pending = true;
	flow->pending[flow->nr_pending++] = node;
	return 0;
}

/* Notes where @node jumps; @state is before it. */
static int learn_jump(struct flow *flow, struct node *node, const struct frame_state *state)
{
	struct frame_state taken = *state;
	uint64_t target;

	if (!instruction_target(&node->instruction, node->offset, &target) ||
	    node->instruction.info.mnemonic == ZYDIS_MNEMONIC_XBEGIN)
		return -ENOTSUP;
	if (!register_state_branch(&taken.registers, &node->instruction, true))
		return 0;
	if (target < flow->function->size_bytes)
		return find_node(flow, target, &node->taken);
	return code_may_return(&flow->returns, flow->function->offset + target, &taken.registers)
		       ? -ENOTSUP
		       : 0;
}

/* Notes what comes next behind @node, which does not always jump. */
static int learn_next(struct flow *flow, struct node *node, const struct frame_state *state)
{
	struct frame_state passed = *state;

	if (!register_state_branch(&passed.registers, &node->instruction, false))
		return 0;
	return find_node(flow, (uint64_t)node->offset + node->instruction.info.length,
			 &node->passed);
}

static bool call_may_return(struct flow *flow, const struct node *node,
			    const struct frame_state *state)
{
	uint64_t target;

	return !instruction_target(&node->instruction, node->offset, &target) ||
	       code_may_return(&flow->returns, flow->function->offset + target, &state->registers);
}

/* True for the return that compilers make. */
static bool is_plain_return(const struct instruction *instruction)
{
	return instruction->info.mnemonic == ZYDIS_MNEMONIC_RET &&
	       instruction->info.meta.branch_type == ZYDIS_BRANCH_TYPE_NEAR &&
	       instruction->info.operand_count_visible == 0;
}

/* Notes what @node, which is reached with @state, leads to. */
static int learn_exits(struct flow *flow, struct node *node, const struct frame_state *state)
{
	int err;

	if (instruction_is_ambiguous(&node->instruction))
		return -ENOTSUP;
	switch (node->instruction.info.meta.category) {
	case ZYDIS_CATEGORY_UNCOND_BR:
		return learn_jump(flow, node, state);
	case ZYDIS_CATEGORY_COND_BR:
		err = learn_jump(flow, node, state);
		return err ? err : learn_next(flow, node, state);
	case ZYDIS_CATEGORY_CALL:
		return call_may_return(flow, node, state) ? learn_next(flow, node, state) : 0;
	case ZYDIS_CATEGORY_RET:
		node->is_return = true;
		return is_plain_return(&node->instruction) && frame_state_is_callers(state)
			       ? 0
			       : -ENOTSUP;
	case ZYDIS_CATEGORY_INTERRUPT:
	case ZYDIS_CATEGORY_SYSRET:
		return -ENOTSUP;
	case ZYDIS_CATEGORY_SYSCALL:
		if (node->instruction.info.mnemonic != ZYDIS_MNEMONIC_SYSCALL)
			return -ENOTSUP;
		return learn_next(flow, node, state);
	default:
		return instruction_traps(&node->instruction) ? 0 : learn_next(flow, node, state);
	}
}

static void meet_return(struct flow *flow, const struct frame_state *state)
{
	struct value block = state->registers.values[REGISTER_AX];

	flow->nr_returns++;
	flow->outcome.registers &= register_state_tokens(&state->registers, block);
	flow->outcome.is_null &= register_state_is_zero(&state->registers, block);
}

static int go(struct flow *flow, enum pass pass, const struct node *node, bool is_taken)
{
	struct frame_state state = node->states[pass];

	if (!register_state_branch(&state.registers, &node->instruction, is_taken))
		return 0;
	if (!frame_state_step(&state, &node->instruction))
		return -ENOTSUP;
	return reach(flow, pass, is_taken ? node->taken : node->passed, &state);
}

static int follow(struct flow *flow, enum pass pass, struct node *node)
{
	int err = 0;

	if (flow->nr_steps_left == 0)
		return -ENOTSUP;
	flow->nr_steps_left--;
	if (pass == FROM_ENTRY)
		err = learn_exits(flow, node, &node->states[pass]);
	else if (node->is_return)
		meet_return(flow, &node->states[pass]);
	if (!err && node->taken)
		err = go(flow, pass, node, true);
	if (!err && node->passed)
		err = go(flow, pass, node, false);
	return err;
}

static bool is_hopeless(const struct flow *flow)
{
	return !flow->outcome.registers && !flow->outcome.is_null;
}

/* Follows what is pending, until nothing is any more. */
static int follow_all(struct flow *flow, enum pass pass)
{
	int err = 0;

	while (flow->nr_pending > 0) {
		struct node *node = flow->pending[--flow->nr_pending];

		node->is_pending = false;
		if (!err && !(pass == FROM_CANDIDATE && is_hopeless(flow)))
			err = follow(flow, pass, node);
	}
	return err;
}

static int follow_from_entry(struct flow *flow)
{
	struct frame_state state = frame_state_entry();
	struct node *entry;
	int err = find_node(flow, 0, &entry);

	flow->rounds[FROM_ENTRY]++;
	if (!err)
		err = reach(flow, FROM_ENTRY, entry, &state);
	return err ? err : follow_all(flow, FROM_ENTRY);
}

/* Where every register is to be recognised later by what it holds now. */
static struct frame_state candidate_state(const struct node *node)
{
	const struct frame_state *here = &node->states[FROM_ENTRY];
	struct frame_state state = {.registers = here->registers};

	state.registers.zero_tokens = 0;
	for (uint32_t i = 0; i < NR_REGISTERS; i++) {
		struct value value = here->registers.values[i];

		if (value.kind == VALUE_STACK)
			continue;
		if (register_state_is_zero(&here->registers, value))
			state.registers.zero_tokens |= (uint16_t)(1u << i);
		state.registers.values[i] = value_make(VALUE_TOKEN, i);
	}
	return state;
}

/* Finds out what is the block at @node. Nothing is, if that differs between paths from there. */
static int find_outcome(struct flow *flow, struct node *node)
{
	int err;

	if (node->outcome.is_known)
		return 0;
	node->outcome.is_known = true;
	flow->start = node;
	flow->nr_returns = 0;
	flow->outcome = (struct outcome){.registers = UINT16_MAX, .is_null = true};
	flow->rounds[FROM_CANDIDATE]++;
	node->rounds[FROM_CANDIDATE] = flow->rounds[FROM_CANDIDATE];
	node->states[FROM_CANDIDATE] = candidate_state(node);
	node->is_pending = true;
	flow->pending[flow->nr_pending++] = node;
	err = follow_all(flow, FROM_CANDIDATE);
	if (err)
		return err == -ENOTSUP && flow->nr_steps_left > 0 ? 0 : err;
	if (flow->nr_returns > 0) {
		node->outcome.registers = flow->outcome.registers;
		node->outcome.is_null = flow->outcome.is_null;
	}
	return 0;
}

/* Where, from the stack pointer at @node, the value that the caller had in register @number is:
 * SINGLE_TRAP_UNCHANGED where still there. Returns false if that is not known. */
static bool find_saved(const struct node *node, uint32_t number, int32_t *ret)
{
	const struct frame_state *state = &node->states[FROM_ENTRY];

	*ret = SINGLE_TRAP_UNCHANGED;
	if (value_is(state->registers.values[number], VALUE_ENTRY, number))
		return true;
	for (int i = 0; i < FRAME_NR_SLOTS; i++) {
		*ret = -FRAME_SLOT_BYTES * (i + 1) - frame_state_stack_pointer(state);
		if (*ret >= 0 && value_is(state->slots[i], VALUE_ENTRY, number))
			return true;
	}
	return false;
}

/* A register that has the size at @node, rather one that calls leave alone. */
static int find_size(const struct flow *flow, const struct node *node)
{
	static const uint8_t order[] = {REGISTER_BX,
					REGISTER_BP,
					REGISTER_R12,
					REGISTER_R13,
					REGISTER_R14,
					REGISTER_R15,
					REGISTER_AX,
					REGISTER_CX,
					REGISTER_DX,
					REGISTER_SI,
					REGISTER_DI,
					8,
					9,
					10,
					11};
	const struct value *values = node->states[FROM_ENTRY].registers.values;

	for (size_t i = 0; i < ARRAY_SIZE(order); i++)
		if (value_is(values[order[i]], VALUE_ENTRY, flow->size_register))
			return order[i];
	return SINGLE_TRAP_NOWHERE;
}

static int find_block(const struct node *node)
{
	if (node->outcome.is_null)
		return SINGLE_TRAP_IS_NULL;
	for (int i = 0; i < NR_REGISTERS; i++)
		if (node->outcome.registers >> i & 1)
			return i;
	return SINGLE_TRAP_NOWHERE;
}

/* Describes @node as a point. Returns false if it can be none. */
static bool describe(const struct flow *flow, const struct node *node,
		     struct single_trap_point *ret)
{
	static const uint8_t saved[SINGLE_TRAP_NR_SAVED] = {
		[SINGLE_TRAP_RBX] = REGISTER_BX,  [SINGLE_TRAP_RBP] = REGISTER_BP,
		[SINGLE_TRAP_R12] = REGISTER_R12, [SINGLE_TRAP_R13] = REGISTER_R13,
		[SINGLE_TRAP_R14] = REGISTER_R14, [SINGLE_TRAP_R15] = REGISTER_R15,
	};
	int32_t stack_pointer = frame_state_stack_pointer(&node->states[FROM_ENTRY]);

	*ret = (struct single_trap_point){
		.offset = node->offset,
		.size_register = find_size(flow, node),
		.block_register = node->notes_size ? SINGLE_TRAP_NOWHERE : find_block(node),
		.frame_bytes = (uint32_t)-stack_pointer,
	};
	for (int i = 0; i < SINGLE_TRAP_NR_SAVED; i++)
		if (!find_saved(node, saved[i], &ret->saved[i]))
			return false;
	return ret->frame_bytes <= SINGLE_TRAP_MAX_FRAME_BYTES;
}

/* True if a cheap probe at @node sees the block. */
static bool sees_block(const struct flow *flow, const struct node *node)
{
	struct single_trap_point point;

	return node->class == PLACEMENT_EMULATED && !node->is_banned &&
	       describe(flow, node, &point) && point.block_register != SINGLE_TRAP_NOWHERE;
}

/* Instructions that every kernel single-steps rightly, of which there is one on any path. */
static bool is_plain(const struct node *node)
{
	const ZydisDecodedInstruction *info = &node->instruction.info;

	if (node->class != PLACEMENT_STEPPED || placement_is_refused(&node->instruction) ||
	    info->encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY ||
	    info->opcode_map != ZYDIS_OPCODE_MAP_DEFAULT)
		return false;
	return info->mnemonic == ZYDIS_MNEMONIC_MOV || info->mnemonic == ZYDIS_MNEMONIC_XOR ||
	       info->mnemonic == ZYDIS_MNEMONIC_ADD || info->mnemonic == ZYDIS_MNEMONIC_POP;
}

/* The same for a dear probe, which a path gets that fails and has no cheap one. */
static bool is_spare(const struct flow *flow, const struct node *node)
{
	struct single_trap_point point;

	return node->is_uncovered && is_plain(node) && !node->is_banned &&
	       describe(flow, node, &point) && point.block_register == SINGLE_TRAP_IS_NULL;
}

/* Notes which nodes are eligible, and from where a return can be reached without one. */
static void find_uncovered(struct flow *flow)
{
	bool is_changed;

	for (size_t i = 0; i < flow->nr_nodes; i++) {
		struct node *node = flow->nodes[i];

		node->is_eligible = sees_block(flow, node);
		node->is_uncovered = node->is_return && !node->is_eligible;
	}
	do {
		is_changed = false;
		for (size_t i = flow->nr_nodes; i-- > 0;) {
			struct node *node = flow->nodes[i];

			if (!node->is_uncovered && !node->is_eligible &&
			    ((node->taken && node->taken->is_uncovered) ||
			     (node->passed && node->passed->is_uncovered)))
				node->is_uncovered = is_changed = true;
		}
	} while (is_changed);
}

static int find_outcomes(struct flow *flow, enum placement_class class)
{
	int err = 0;

	for (size_t i = 0; i < flow->nr_nodes && !err; i++) {
		struct node *node = flow->nodes[i];

		if (node->class == class && (class == PLACEMENT_EMULATED || is_plain(node)))
			err = find_outcome(flow, node);
	}
	return err;
}

/* Comes to @node on a walk, if for the first time. */
static void visit(struct flow *flow, struct node *node)
{
	if (!node || node->seen == flow->walk)
		return;
	node->seen = flow->walk;
	flow->pending[flow->nr_pending++] = node;
}

/* Chooses the first nodes that will do on each path. Returns false if a path has none. */
static bool choose(struct flow *flow)
{
	bool is_covered = true;

	for (size_t i = 0; i < flow->nr_nodes; i++)
		flow->nodes[i]->is_chosen = false;
	flow->walk++;
	visit(flow, flow->at[0]);
	while (flow->nr_pending > 0) {
		struct node *node = flow->pending[--flow->nr_pending];

		node->is_chosen = node->is_eligible || is_spare(flow, node);
		if (node->is_chosen)
			continue;
		if (node->is_return)
			is_covered = false;
		visit(flow, node->taken);
		visit(flow, node->passed);
	}
	return is_covered;
}

/* True if a path leads from @node to a chosen one. */
static bool leads_to_chosen(struct flow *flow, const struct node *node)
{
	bool is_found = false;

	flow->walk++;
	visit(flow, node->taken);
	visit(flow, node->passed);
	while (flow->nr_pending > 0) {
		const struct node *next = flow->pending[--flow->nr_pending];

		is_found |= next->is_chosen;
		visit(flow, next->taken);
		visit(flow, next->passed);
	}
	return is_found;
}

/* Bans those of the chosen behind which another follows. Returns false if none does. */
static bool ban_repeated(struct flow *flow)
{
	bool is_banned = false;

	for (size_t i = 0; i < flow->nr_nodes; i++) {
		struct node *node = flow->nodes[i];

		if (node->is_chosen && leads_to_chosen(flow, node))
			node->is_banned = is_banned = true;
	}
	return is_banned;
}

/* Chooses nodes so that each path to a return passes exactly one. */
static int choose_all(struct flow *flow)
{
	int err = find_outcomes(flow, PLACEMENT_EMULATED);

	if (!err)
		err = find_outcomes(flow, PLACEMENT_STEPPED);
	if (err)
		return err;
	for (int i = 0; i < MAX_CHOICES; i++) {
		find_uncovered(flow);
		if (!choose(flow))
			return -ENOTSUP;
		if (!ban_repeated(flow))
			return 0;
	}
	return -ENOTSUP;
}

/* The size is to be known before @node: at @before, which leads there, or before that. */
static void want_size(struct flow *flow, struct node *before)
{
	struct single_trap_point point;

	if (before->wants_size || before->notes_size)
		return;
	if (before->class == PLACEMENT_EMULATED && !before->is_chosen &&
	    describe(flow, before, &point) && point.size_register != SINGLE_TRAP_NOWHERE) {
		before->notes_size = true;
		return;
	}
	before->wants_size = true;
	flow->pending[flow->nr_pending++] = before;
}

/* Adds the points that only note the size. Returns false if a path has none. */
static bool choose_sizes(struct flow *flow)
{
	for (size_t i = 0; i < flow->nr_nodes; i++) {
		struct node *node = flow->nodes[i];

		if (node->is_chosen && find_size(flow, node) == SINGLE_TRAP_NOWHERE) {
			node->wants_size = true;
			flow->pending[flow->nr_pending++] = node;
		}
	}
	while (flow->nr_pending > 0) {
		const struct node *node = flow->pending[--flow->nr_pending];

		for (size_t i = 0; i < flow->nr_nodes; i++)
			if (flow->nodes[i]->taken == node || flow->nodes[i]->passed == node)
				want_size(flow, flow->nodes[i]);
	}
	return !flow->at[0]->wants_size;
}

/* How a call came to a node: a bit each; and of these a bit for each combination, in node.ways. */
enum way {
	WAY_HAS_SIZE = 1,
	WAY_HAS_BLOCK = 2,
	NR_WAYS = 4,
};

/* The ways on from @node for a call that comes by @way, or -1 if that breaks the promise. */
static int pass_node(const struct flow *flow, const struct node *node, int way)
{
	bool has_size = find_size(flow, node) != SINGLE_TRAP_NOWHERE;

	if (node->notes_size && has_size)
		way |= WAY_HAS_SIZE;
	if (node->is_chosen) {
		if (way & WAY_HAS_BLOCK || !(has_size || way & WAY_HAS_SIZE))
			return -1;
		way |= WAY_HAS_BLOCK;
	}
	return node->is_return && !(way & WAY_HAS_BLOCK) ? -1 : way;
}

static void add_way(struct flow *flow, struct node *node, int way)
{
	if (!node || node->ways >> way & 1)
		return;
	node->ways |= (uint8_t)(1u << way);
	if (node->is_pending)
		return;
	node->is_pending = true;
	flow->pending[flow->nr_pending++] = node;
}

/* Goes all ways through the function, to see whether the points keep the header's promise. */
static bool keeps_promise(struct flow *flow)
{
	bool is_kept = true;

	add_way(flow, flow->at[0], 0);
	while (flow->nr_pending > 0) {
		struct node *node = flow->pending[--flow->nr_pending];

		node->is_pending = false;
		for (int way = 0; way < NR_WAYS && is_kept; way++) {
			int next = node->ways >> way & 1 ? pass_node(flow, node, way) : way;

			is_kept = next >= 0;
			if (is_kept && node->ways >> way & 1) {
				add_way(flow, node->taken, next);
				add_way(flow, node->passed, next);
			}
		}
	}
	return is_kept;
}

/* True if instructions that are reached share bytes: a probe on one would change another. */
static bool overlaps(const struct flow *flow)
{
	for (size_t i = 0; i < flow->nr_nodes; i++) {
		const struct node *node = flow->nodes[i];

		for (uint32_t byte = 1; byte < node->instruction.info.length; byte++)
			if (flow->at[node->offset + byte])
				return true;
	}
	return false;
}

static int collect(const struct flow *flow, struct single_trap_point ret[SINGLE_TRAP_MAX_POINTS])
{
	int nr = 0;

	for (uint64_t offset = 0; offset < flow->function->size_bytes; offset++) {
		const struct node *node = flow->at[offset];

		if (!node || !(node->is_chosen || node->notes_size))
			continue;
		if (nr == SINGLE_TRAP_MAX_POINTS || !describe(flow, node, &ret[nr]))
			return -ENOTSUP;
		placement_describe(flow->code + offset, flow->function->size_bytes - offset,
				   flow->kernel, &ret[nr].instruction);
		nr++;
	}
	return nr;
}

/* Whether a function's symbol is within another function. */
struct inner_entry {
	const struct elf_image *image;
	const struct elf_function *function;
	bool is_found;
};

static bool find_inner_entry(void *context, const struct elf_symbol *symbol)
{
	struct inner_entry *inner = context;
	struct elf_function found;

	if ((symbol->type == STT_FUNC || symbol->type == STT_GNU_IFUNC) && !symbol->is_import &&
	    elf_image_locate(inner->image, symbol, &found) &&
	    found.offset > inner->function->offset &&
	    found.offset - inner->function->offset < inner->function->size_bytes)
		inner->is_found = true;
	return !inner->is_found;
}

/* Returns -ENOTSUP if the function may be entered behind its entry. */
static int check_entries(const struct elf_image *image, const struct elf_function *function)
{
	struct inner_entry inner = {.image = image, .function = function};
	struct code_span span = {
		.first = function->offset + 1,
		.last = function->offset + function->size_bytes - 1,
		.own_begin = function->offset,
		.own_end = function->offset + function->size_bytes,
	};
	int err;

	elf_image_visit_symbols(image, find_inner_entry, &inner);
	if (inner.is_found || landing_pads_may_exist(image, function))
		return -ENOTSUP;
	err = code_jumps_find(image, &span, 1);
	return err ? err : span.is_entered ? -ENOTSUP : 0;
}

static int find_points(struct flow *flow, struct single_trap_point ret[SINGLE_TRAP_MAX_POINTS])
{
	int err = follow_from_entry(flow);

	if (!err && overlaps(flow))
		err = -ENOTSUP;
	if (!err)
		err = choose_all(flow);
	if (!err && (!choose_sizes(flow) || !keeps_promise(flow)))
		err = -ENOTSUP;
	return err ? err : collect(flow, ret);
}

int single_trap_points_find(const struct elf_image *image, const struct elf_function *function,
			    int size_arg, const struct placement_kernel *kernel,
			    struct single_trap_point ret[SINGLE_TRAP_MAX_POINTS])
{
	static const uint8_t arguments[] = {REGISTER_DI, REGISTER_SI, REGISTER_DX,
					    REGISTER_CX, 8,	      9};
	struct flow *flow;
	int nr;

	if (!image->is_x86_64 || function->size_bytes == 0 ||
	    function->size_bytes > CODE_FLOW_MAX_BYTES || size_arg < 0 ||
	    (size_t)size_arg >= ARRAY_SIZE(arguments))
		return 0;
	flow = calloc(1, sizeof(*flow));
	if (!flow)
		return -ENOMEM;
	nr = flow_init(flow, image, function, kernel);
	flow->size_register = arguments[size_arg];
	if (nr == 0)
		nr = find_points(flow, ret);
	if (flow->returns.error)
		nr = flow->returns.error;
	if (nr > 0) {
		int err = check_entries(image, function);

		nr = err ? err : nr;
	}
	flow_deinit(flow);
	free(flow);
	return nr == -ENOTSUP ? 0 : nr;
}
