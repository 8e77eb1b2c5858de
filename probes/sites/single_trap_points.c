/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/sites/single_trap_points.h"

#include "common/scope.h"
#include "probes/elf/landing_pads.h"
#include "probes/sites/flow_graph.h"
#include "probes/x86/code_jumps.h"

#include <errno.h>

#define MAX_CHOICES 64

/* Here, -ENOTSUP means "it cannot be proved". */

/* The choice of points in one function. */
struct choice {
	struct flow_graph graph;
	uint32_t size_register; /* holds the size at the entry */
	unsigned int walk;	/* number of the present one, see visit() */
};

/*
 * Finds where, from the stack pointer at @node, the value is that the caller had in register
 * @number: SINGLE_TRAP_UNCHANGED if it is still in that register. Returns false if that is not
 * known.
 */
static bool find_saved(const struct flow_node *node, uint32_t number, int32_t *ret)
{
	const struct frame_state *state = &node->states[FLOW_FROM_ENTRY];

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

/* A register that holds the size at @node; registers that calls preserve come first. */
static int find_size(const struct choice *choice, const struct flow_node *node)
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
	const struct value *values = node->states[FLOW_FROM_ENTRY].registers.values;

	for (size_t i = 0; i < ARRAY_SIZE(order); i++)
		if (value_is(values[order[i]], VALUE_ENTRY, choice->size_register))
			return order[i];
	return SINGLE_TRAP_NOWHERE;
}

static int find_block(const struct flow_node *node)
{
	if (node->result.is_null)
		return SINGLE_TRAP_IS_NULL;
	for (int i = 0; i < NR_REGISTERS; i++)
		if (node->result.registers >> i & 1)
			return i;
	return SINGLE_TRAP_NOWHERE;
}

/* Describes @node as a point. Returns false if it cannot be one. */
static bool describe(const struct choice *choice, const struct flow_node *node,
		     struct single_trap_point *ret)
{
	static const uint8_t saved[SINGLE_TRAP_NR_SAVED] = {
		[SINGLE_TRAP_RBX] = REGISTER_BX,  [SINGLE_TRAP_RBP] = REGISTER_BP,
		[SINGLE_TRAP_R12] = REGISTER_R12, [SINGLE_TRAP_R13] = REGISTER_R13,
		[SINGLE_TRAP_R14] = REGISTER_R14, [SINGLE_TRAP_R15] = REGISTER_R15,
	};
	int32_t stack_pointer = frame_state_stack_pointer(&node->states[FLOW_FROM_ENTRY]);

	*ret = (struct single_trap_point){
		.offset = node->offset,
		.size_register = find_size(choice, node),
		.block_register = node->notes_size ? SINGLE_TRAP_NOWHERE : find_block(node),
		.frame_bytes = (uint32_t)-stack_pointer,
	};
	for (int i = 0; i < SINGLE_TRAP_NR_SAVED; i++)
		if (!find_saved(node, saved[i], &ret->saved[i]))
			return false;
	return ret->frame_bytes <= SINGLE_TRAP_MAX_FRAME_BYTES;
}

/* True if an emulated probe at @node sees the block. */
static bool sees_block(const struct choice *choice, const struct flow_node *node)
{
	struct single_trap_point point;

	return node->class == PLACEMENT_EMULATED && !node->is_banned &&
	       describe(choice, node, &point) && point.block_register != SINGLE_TRAP_NOWHERE;
}

/* True for instructions that every kernel single-steps correctly. Nearly every path has one. */
static bool is_simple(const struct flow_node *node)
{
	const ZydisDecodedInstruction *info = &node->instruction.info;

	if (node->class != PLACEMENT_STEPPED ||
	    info->encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY ||
	    info->opcode_map != ZYDIS_OPCODE_MAP_DEFAULT)
		return false;
	return info->mnemonic == ZYDIS_MNEMONIC_MOV || info->mnemonic == ZYDIS_MNEMONIC_XOR ||
	       info->mnemonic == ZYDIS_MNEMONIC_ADD || info->mnemonic == ZYDIS_MNEMONIC_POP;
}

/*
 * True if an expensive (single-stepped) probe at @node sees that the call fails. A failing path
 * without an emulated instruction gets one.
 */
static bool is_fallback(const struct choice *choice, const struct flow_node *node)
{
	struct single_trap_point point;

	return node->is_uncovered && is_simple(node) && !node->is_banned &&
	       describe(choice, node, &point) && point.block_register == SINGLE_TRAP_IS_NULL;
}

/* Marks the eligible nodes, and those from which a path leads to a return without one. */
static void find_uncovered(struct choice *choice)
{
	bool is_changed;

	for (size_t i = 0; i < choice->graph.nr_nodes; i++) {
		struct flow_node *node = choice->graph.nodes[i];

		node->is_eligible = sees_block(choice, node);
		node->is_uncovered = node->is_return && !node->is_eligible;
	}
	do {
		is_changed = false;
		for (size_t i = choice->graph.nr_nodes; i-- > 0;) {
			struct flow_node *node = choice->graph.nodes[i];

			if (!node->is_uncovered && !node->is_eligible &&
			    ((node->taken && node->taken->is_uncovered) ||
			     (node->next && node->next->is_uncovered)))
				node->is_uncovered = is_changed = true;
		}
	} while (is_changed);
}

/* Finds, for the nodes of @class that may get a probe, which registers hold the result. */
static int find_results(struct choice *choice, enum placement_class class)
{
	int err = 0;

	for (size_t i = 0; i < choice->graph.nr_nodes && !err; i++) {
		struct flow_node *node = choice->graph.nodes[i];

		if (node->class == class && (class == PLACEMENT_EMULATED || is_simple(node)))
			err = flow_graph_find_result(&choice->graph, node);
	}
	return err;
}

/* Adds @node to the pending ones, unless this walk has visited it. */
static void visit(struct choice *choice, struct flow_node *node)
{
	if (!node || node->walk == choice->walk)
		return;
	node->walk = choice->walk;
	choice->graph.pending[choice->graph.nr_pending++] = node;
}

/* Chooses the first suitable node on each path. Returns false if a path has none. */
static bool choose_first(struct choice *choice)
{
	bool is_covered = true;

	for (size_t i = 0; i < choice->graph.nr_nodes; i++)
		choice->graph.nodes[i]->is_chosen = false;
	choice->walk++;
	visit(choice, choice->graph.at[0]);
	while (choice->graph.nr_pending > 0) {
		struct flow_node *node = choice->graph.pending[--choice->graph.nr_pending];

		node->is_chosen = node->is_eligible || is_fallback(choice, node);
		if (node->is_chosen)
			continue;
		if (node->is_return)
			is_covered = false;
		visit(choice, node->taken);
		visit(choice, node->next);
	}
	return is_covered;
}

/* True if a path leads from @node to a chosen one. */
static bool leads_to_chosen(struct choice *choice, const struct flow_node *node)
{
	bool is_found = false;

	choice->walk++;
	visit(choice, node->taken);
	visit(choice, node->next);
	while (choice->graph.nr_pending > 0) {
		const struct flow_node *next = choice->graph.pending[--choice->graph.nr_pending];

		is_found |= next->is_chosen;
		visit(choice, next->taken);
		visit(choice, next->next);
	}
	return is_found;
}

/* Bans the chosen nodes that another chosen one follows. Returns false if there are none. */
static bool ban_repeated(struct choice *choice)
{
	bool is_banned = false;

	for (size_t i = 0; i < choice->graph.nr_nodes; i++) {
		struct flow_node *node = choice->graph.nodes[i];

		if (node->is_chosen && leads_to_chosen(choice, node))
			node->is_banned = is_banned = true;
	}
	return is_banned;
}

/* Chooses nodes so that each path to a return passes exactly one. */
static int choose_blocks(struct choice *choice)
{
	int err = find_results(choice, PLACEMENT_EMULATED);

	if (!err)
		err = find_results(choice, PLACEMENT_STEPPED);
	if (err)
		return err;
	for (int i = 0; i < MAX_CHOICES; i++) {
		find_uncovered(choice);
		if (!choose_first(choice))
			return -ENOTSUP;
		if (!ban_repeated(choice))
			return 0;
	}
	return -ENOTSUP;
}

/* The size must be known before a successor of @before: at @before, or earlier. */
static void want_size(struct choice *choice, struct flow_node *before)
{
	struct single_trap_point point;

	if (before->wants_size || before->notes_size)
		return;
	if (before->class == PLACEMENT_EMULATED && !before->is_chosen &&
	    describe(choice, before, &point) && point.size_register != SINGLE_TRAP_NOWHERE) {
		before->notes_size = true;
		return;
	}
	before->wants_size = true;
	choice->graph.pending[choice->graph.nr_pending++] = before;
}

/* Adds the points that record only the size. Returns false if a path has none. */
static bool choose_sizes(struct choice *choice)
{
	for (size_t i = 0; i < choice->graph.nr_nodes; i++) {
		struct flow_node *node = choice->graph.nodes[i];

		if (node->is_chosen && find_size(choice, node) == SINGLE_TRAP_NOWHERE) {
			node->wants_size = true;
			choice->graph.pending[choice->graph.nr_pending++] = node;
		}
	}
	while (choice->graph.nr_pending > 0) {
		const struct flow_node *node = choice->graph.pending[--choice->graph.nr_pending];

		for (size_t i = 0; i < choice->graph.nr_nodes; i++)
			if (choice->graph.nodes[i]->taken == node ||
			    choice->graph.nodes[i]->next == node)
				want_size(choice, choice->graph.nodes[i]);
	}
	return !choice->graph.at[0]->wants_size;
}

/*
 * What the points have recorded of a call that comes to a node. flow_node.ways has a bit for each
 * of these states in which a call can arrive.
 */
enum way {
	WAY_HAS_SIZE = 1,
	WAY_HAS_BLOCK = 2,
	NR_WAYS = 4,
};

/*
 * Returns the state in which a call leaves @node if it arrived in @way; -1: it breaks the promise.
 */
static int pass_node(const struct choice *choice, const struct flow_node *node, int way)
{
	bool has_size = find_size(choice, node) != SINGLE_TRAP_NOWHERE;

	if (node->notes_size && has_size)
		way |= WAY_HAS_SIZE;
	if (node->is_chosen) {
		if (way & WAY_HAS_BLOCK || !(has_size || way & WAY_HAS_SIZE))
			return -1;
		way |= WAY_HAS_BLOCK;
	}
	return node->is_return && !(way & WAY_HAS_BLOCK) ? -1 : way;
}

static void add_way(struct choice *choice, struct flow_node *node, int way)
{
	if (!node || node->ways >> way & 1)
		return;
	node->ways |= (uint8_t)(1u << way);
	if (node->is_pending)
		return;
	node->is_pending = true;
	choice->graph.pending[choice->graph.nr_pending++] = node;
}

/* Follows every path through the function, to check the promise of the header. */
static bool keeps_promise(struct choice *choice)
{
	bool is_kept = true;

	add_way(choice, choice->graph.at[0], 0);
	while (choice->graph.nr_pending > 0) {
		struct flow_node *node = choice->graph.pending[--choice->graph.nr_pending];

		node->is_pending = false;
		for (int way = 0; way < NR_WAYS && is_kept; way++) {
			int next = node->ways >> way & 1 ? pass_node(choice, node, way) : way;

			is_kept = next >= 0;
			if (is_kept && node->ways >> way & 1) {
				add_way(choice, node->taken, next);
				add_way(choice, node->next, next);
			}
		}
	}
	return is_kept;
}

static int collect(const struct choice *choice,
		   struct single_trap_point ret[SINGLE_TRAP_MAX_POINTS])
{
	int nr = 0;

	for (uint64_t offset = 0; offset < choice->graph.function->size_bytes; offset++) {
		const struct flow_node *node = choice->graph.at[offset];

		if (!node || !(node->is_chosen || node->notes_size))
			continue;
		if (nr == SINGLE_TRAP_MAX_POINTS || !describe(choice, node, &ret[nr]))
			return -ENOTSUP;
		placement_describe(choice->graph.code + offset,
				   choice->graph.function->size_bytes - offset,
				   choice->graph.kernel, &ret[nr].instruction);
		nr++;
	}
	return nr;
}

/* A search for symbols of functions inside another function. */
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

/* Returns -ENOTSUP if the function may be entered after its entry. */
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

static int find_points(struct choice *choice, struct single_trap_point ret[SINGLE_TRAP_MAX_POINTS])
{
	int err = flow_graph_follow(&choice->graph);

	if (!err && flow_graph_overlaps(&choice->graph))
		err = -ENOTSUP;
	if (!err)
		err = choose_blocks(choice);
	if (!err && (!choose_sizes(choice) || !keeps_promise(choice)))
		err = -ENOTSUP;
	return err ? err : collect(choice, ret);
}

int single_trap_points_find(const struct elf_image *image, const struct elf_function *function,
			    int size_arg, const struct placement_kernel *kernel,
			    struct single_trap_point ret[SINGLE_TRAP_MAX_POINTS])
{
	static const uint8_t arguments[] = {REGISTER_DI, REGISTER_SI, REGISTER_DX,
					    REGISTER_CX, 8,	      9};
	struct choice *choice;
	int nr;

	if (!image->is_x86_64 || function->size_bytes == 0 ||
	    function->size_bytes > CODE_FLOW_MAX_BYTES || size_arg < 0 ||
	    (size_t)size_arg >= ARRAY_SIZE(arguments))
		return 0;
	choice = calloc(1, sizeof(*choice));
	if (!choice)
		return -ENOMEM;
	nr = flow_graph_init(&choice->graph, image, function, kernel);
	choice->size_register = arguments[size_arg];
	if (nr == 0)
		nr = find_points(choice, ret);
	if (choice->graph.returns.error)
		nr = choice->graph.returns.error;
	if (nr > 0) {
		int err = check_entries(image, function);

		nr = err ? err : nr;
	}
	flow_graph_deinit(&choice->graph);
	free(choice);
	return nr == -ENOTSUP ? 0 : nr;
}
