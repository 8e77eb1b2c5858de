/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The control flow graph of an x86-64 function: the instructions that its entry reaches, where each
 * leads to, and what the registers and the frame hold there on every path. The graph also finds
 * which register holds the function's result before it returns.
 *
 * A function that cannot be followed in full has no graph: the functions below return -ENOTSUP. The
 * code is hostile; sizes and steps have limits.
 */
#ifndef LEAKTOOLS_PROBES_FLOW_GRAPH_H
#define LEAKTOOLS_PROBES_FLOW_GRAPH_H

#include "probes/elf/elf_image.h"
#include "probes/x86/code_returns.h"
#include "probes/x86/frame_state.h"
#include "probes/x86/placement.h"

enum flow_pass {
	FLOW_FROM_ENTRY,
	FLOW_FROM_NODE,
	FLOW_NR_PASSES,
};

/* What a function returns, as seen from a node: true of every path from there to a return. */
struct flow_result {
	uint16_t registers; /* a bit for each that holds it */
	bool is_null;
	bool is_known; /* false: not looked for yet */
};

/* An instruction that the entry reaches. */
struct flow_node {
	uint32_t offset; /* in the function, in bytes */
	struct instruction instruction;
	enum placement_class class;
	bool is_return, is_pending;
	struct flow_node *taken,
		*next; /* where it jumps, and what follows it; NULL if it does not */
	unsigned int rounds[FLOW_NR_PASSES]; /* states[] are of these rounds */
	struct frame_state states[FLOW_NR_PASSES];
	struct flow_result result;

	/* Used by single_trap_points.c only. */
	bool is_eligible;  /* an emulated probe here sees the block */
	bool is_uncovered; /* a path from here returns without an eligible node */
	bool is_chosen;	   /* here is a point with the block */
	bool is_banned;	   /* must not be chosen: another chosen node follows */
	bool wants_size;   /* a point with only the size must precede this node */
	bool notes_size;   /* here is such a point */
	uint8_t ways;	   /* states in which calls arrive here: a bit for each enum way */
	unsigned int walk; /* the last one that came here */
};

struct flow_graph {
	const struct elf_function *function;
	const struct placement_kernel *kernel;
	uint8_t *code;
	struct flow_node **at;	  /* by offset; NULL where no node begins */
	struct flow_node **nodes; /* in the order in which they were found */
	size_t nr_nodes;
	struct flow_node **pending; /* nodes still to visit, each at most once */
	size_t nr_pending;
	struct code_returns returns;

	unsigned int rounds[FLOW_NR_PASSES], nr_steps_left;
	/* The node whose result flow_graph_find_result() looks for. */
	struct flow_node *start;
	struct flow_result result;
	size_t nr_returns;
};

/*
 * Reads @function of @image; all arguments must stay. Returns 0, -ENOMEM or what elf_image_read()
 * returns. Release with flow_graph_deinit() in any case.
 */
int flow_graph_init(struct flow_graph *ret, const struct elf_image *image,
		    const struct elf_function *function, const struct placement_kernel *kernel);
void flow_graph_deinit(struct flow_graph *graph);

/*
 * Follows the code from the function's entry and fills in the nodes. Returns 0, -ENOTSUP or
 * -ENOMEM. An error of reading is in @graph->returns.error.
 */
int flow_graph_follow(struct flow_graph *graph);

/*
 * Finds @node->result. It is empty if the paths from there differ, or if some calls pass @node
 * twice. Returns 0, or -ENOTSUP if the steps are used up.
 */
int flow_graph_find_result(struct flow_graph *graph, struct flow_node *node);

/* True if two nodes share bytes: a probe on one would change the other. */
bool flow_graph_overlaps(const struct flow_graph *graph);

#endif
