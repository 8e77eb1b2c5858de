/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/sites/flow_graph.h"

#include "common/scope.h"

#include <errno.h>

#define MAX_INSTRUCTIONS 4096
#define MAX_STEPS	 1000000 /* instructions, each as often as it is followed */

void flow_graph_deinit(struct flow_graph *graph)
{
	for (size_t i = 0; i < graph->nr_nodes; i++)
		free(graph->nodes[i]);
	free(graph->nodes);
	free(graph->pending);
	free(graph->at);
	free(graph->code);
}

int flow_graph_init(struct flow_graph *ret, const struct elf_image *image,
		    const struct elf_function *function, const struct placement_kernel *kernel)
{
	size_t size = function->size_bytes;

	*ret = (struct flow_graph){
		.function = function, .kernel = kernel, .nr_steps_left = MAX_STEPS};
	ret->code = malloc(size);
	ret->at = calloc(size, sizeof(struct flow_node *));
	ret->nodes = calloc(MAX_INSTRUCTIONS, sizeof(struct flow_node *));
	ret->pending = calloc(MAX_INSTRUCTIONS, sizeof(struct flow_node *));
	if (!ret->code || !ret->at || !ret->nodes || !ret->pending)
		return -ENOMEM;
	code_returns_init(&ret->returns, image, function->offset);
	return elf_image_read(image, function->offset, ret->code, size);
}

static int find_node(struct flow_graph *graph, uint64_t offset, struct flow_node **ret)
{
	size_t size = graph->function->size_bytes;
	_cleanup_free_ struct flow_node *node = NULL;

	if (offset >= size)
		return -ENOTSUP;
	*ret = graph->at[offset];
	if (*ret)
		return 0;
	if (graph->nr_nodes == MAX_INSTRUCTIONS)
		return -ENOTSUP;
	node = calloc(1, sizeof(*node));
	if (!node)
		return -ENOMEM;
	if (!instruction_decode(&node->instruction, graph->code + offset, size - offset))
		return -ENOTSUP;
	node->offset = (uint32_t)offset;
	node->class = placement_classify(&node->instruction, graph->code + offset, graph->kernel);
	graph->at[offset] = graph->nodes[graph->nr_nodes++] = *ret = node;
	node = NULL;
	return 0;
}

/* Adds @state to what is known at @node, to which control may come with it. */
static int reach(struct flow_graph *graph, enum flow_pass pass, struct flow_node *node,
		 const struct frame_state *state)
{
	bool is_changed = true;

	if (pass == FLOW_FROM_NODE && node == graph->start)
		return -ENOTSUP; /* Some calls pass this node twice. */
	if (node->rounds[pass] != graph->rounds[pass]) {
		node->rounds[pass] = graph->rounds[pass];
		node->states[pass] = *state;
	} else if (!frame_state_join(&node->states[pass], state, &is_changed)) {
		return -ENOTSUP;
	}
	if (!is_changed || node->is_pending)
		return 0;
	node->is_pending = true;
	graph->pending[graph->nr_pending++] = node;
	return 0;
}

/* Sets @node->taken; @state holds before @node. */
static int find_target_node(struct flow_graph *graph, struct flow_node *node,
			    const struct frame_state *state)
{
	struct frame_state taken = *state;
	uint64_t target;

	if (!instruction_target(&node->instruction, node->offset, &target) ||
	    node->instruction.info.mnemonic == ZYDIS_MNEMONIC_XBEGIN)
		return -ENOTSUP;
	if (!register_state_branch(&taken.registers, &node->instruction, true))
		return 0;
	if (target < graph->function->size_bytes)
		return find_node(graph, target, &node->taken);
	return code_may_return(&graph->returns, graph->function->offset + target, &taken.registers)
		       ? -ENOTSUP
		       : 0;
}

/* Sets @node->next unless @node always jumps. */
static int find_next_node(struct flow_graph *graph, struct flow_node *node,
			  const struct frame_state *state)
{
	struct frame_state passed = *state;

	if (!register_state_branch(&passed.registers, &node->instruction, false))
		return 0;
	return find_node(graph, (uint64_t)node->offset + node->instruction.info.length,
			 &node->next);
}

static bool call_may_return(struct flow_graph *graph, const struct flow_node *node,
			    const struct frame_state *state)
{
	uint64_t target;

	return !instruction_target(&node->instruction, node->offset, &target) ||
	       code_may_return(&graph->returns, graph->function->offset + target,
			       &state->registers);
}

/* True for the return that compilers make. */
static bool is_plain_return(const struct instruction *instruction)
{
	return instruction->info.mnemonic == ZYDIS_MNEMONIC_RET &&
	       instruction->info.meta.branch_type == ZYDIS_BRANCH_TYPE_NEAR &&
	       instruction->info.operand_count_visible == 0;
}

/* Sets the successors of @node, which is reached with @state. */
static int find_successors(struct flow_graph *graph, struct flow_node *node,
			   const struct frame_state *state)
{
	int err;

	if (instruction_is_ambiguous(&node->instruction))
		return -ENOTSUP;
	switch (node->instruction.info.meta.category) {
	case ZYDIS_CATEGORY_UNCOND_BR:
		return find_target_node(graph, node, state);
	case ZYDIS_CATEGORY_COND_BR:
		err = find_target_node(graph, node, state);
		return err ? err : find_next_node(graph, node, state);
	case ZYDIS_CATEGORY_CALL:
		return call_may_return(graph, node, state) ? find_next_node(graph, node, state) : 0;
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
		return find_next_node(graph, node, state);
	default:
		return instruction_traps(&node->instruction) ? 0
							     : find_next_node(graph, node, state);
	}
}

/* Reduces the result to what also holds at this return. */
static void add_return(struct flow_graph *graph, const struct frame_state *state)
{
	struct value block = state->registers.values[REGISTER_AX];

	graph->nr_returns++;
	graph->result.registers &= register_state_tokens(&state->registers, block);
	graph->result.is_null &= register_state_is_zero(&state->registers, block);
}

/* Carries the state of @node to one of its successors. */
static int follow_edge(struct flow_graph *graph, enum flow_pass pass, const struct flow_node *node,
		       bool is_taken)
{
	struct frame_state state = node->states[pass];

	if (!register_state_branch(&state.registers, &node->instruction, is_taken))
		return 0;
	if (!frame_state_step(&state, &node->instruction))
		return -ENOTSUP;
	return reach(graph, pass, is_taken ? node->taken : node->next, &state);
}

static int follow(struct flow_graph *graph, enum flow_pass pass, struct flow_node *node)
{
	int err = 0;

	if (graph->nr_steps_left == 0)
		return -ENOTSUP;
	graph->nr_steps_left--;
	if (pass == FLOW_FROM_ENTRY)
		err = find_successors(graph, node, &node->states[pass]);
	else if (node->is_return)
		add_return(graph, &node->states[pass]);
	if (!err && node->taken)
		err = follow_edge(graph, pass, node, true);
	if (!err && node->next)
		err = follow_edge(graph, pass, node, false);
	return err;
}

/* True once no register can hold the result on every path. */
static bool has_no_result(const struct flow_graph *graph)
{
	return !graph->result.registers && !graph->result.is_null;
}

/* Follows the pending nodes until none is left. */
static int follow_all(struct flow_graph *graph, enum flow_pass pass)
{
	int err = 0;

	while (graph->nr_pending > 0) {
		struct flow_node *node = graph->pending[--graph->nr_pending];

		node->is_pending = false;
		if (!err && !(pass == FLOW_FROM_NODE && has_no_result(graph)))
			err = follow(graph, pass, node);
	}
	return err;
}

int flow_graph_follow(struct flow_graph *graph)
{
	struct frame_state state = frame_state_entry();
	struct flow_node *entry;
	int err = find_node(graph, 0, &entry);

	graph->rounds[FLOW_FROM_ENTRY]++;
	if (!err)
		err = reach(graph, FLOW_FROM_ENTRY, entry, &state);
	return err ? err : follow_all(graph, FLOW_FROM_ENTRY);
}

/* The state in which each register at @node holds a token, by which its value is recognised. */
static struct frame_state token_state(const struct flow_node *node)
{
	const struct frame_state *here = &node->states[FLOW_FROM_ENTRY];
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

int flow_graph_find_result(struct flow_graph *graph, struct flow_node *node)
{
	int err;

	if (node->result.is_known)
		return 0;
	node->result.is_known = true;
	graph->start = node;
	graph->nr_returns = 0;
	graph->result = (struct flow_result){.registers = UINT16_MAX, .is_null = true};
	graph->rounds[FLOW_FROM_NODE]++;
	node->rounds[FLOW_FROM_NODE] = graph->rounds[FLOW_FROM_NODE];
	node->states[FLOW_FROM_NODE] = token_state(node);
	node->is_pending = true;
	graph->pending[graph->nr_pending++] = node;
	err = follow_all(graph, FLOW_FROM_NODE);
	if (err)
		return err == -ENOTSUP && graph->nr_steps_left > 0 ? 0 : err;
	if (graph->nr_returns > 0) {
		node->result.registers = graph->result.registers;
		node->result.is_null = graph->result.is_null;
	}
	return 0;
}

bool flow_graph_overlaps(const struct flow_graph *graph)
{
	for (size_t i = 0; i < graph->nr_nodes; i++) {
		const struct flow_node *node = graph->nodes[i];

		for (uint32_t byte = 1; byte < node->instruction.info.length; byte++)
			if (graph->at[node->offset + byte])
				return true;
	}
	return false;
}
