/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Strongly connected components by Tarjan's algorithm, without recursion. */
#include "scan/marking/lost_graph.h"

#include <errno.h>
#include <stdlib.h>

#define UNVISITED 0u

/* Arrays are by the place of a block in the graph's list. */
struct analysis {
	const struct marking *marking;
	struct lost_graph *graph;
	uint32_t *order;     /* of the first visit, from 1 */
	uint32_t *low;	     /* the earliest block that it leads back to */
	uint32_t *component; /* HEAP_NONE: not known yet */
	uint32_t *stack;     /* of blocks without a component */
	struct frame {
		uint32_t node;
		uint64_t word; /* the next one to look at */
	} * frames;
	size_t nr_stack, nr_frames;
	uint32_t next_order, nr_components;
	uint8_t *is_led_to; /* by component: from another one */
	uint32_t *first;    /* by component: its first block */
	uint32_t *sizes;    /* by component: blocks */
};

const struct lost_block *lost_graph_find(const struct lost_graph *graph, uint32_t block)
{
	size_t low = 0, high = graph->nr;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (graph->blocks[middle].block < block)
			low = middle + 1;
		else
			high = middle;
	}
	return low < graph->nr && graph->blocks[low].block == block ? &graph->blocks[low] : NULL;
}

/* The lost block that @value leads to, by its place; HEAP_NONE: none. */
static uint32_t target_of(const struct analysis *analysis, uint64_t value)
{
	const struct heap *heap = analysis->marking->heap;
	const struct lost_block *lost;
	uint64_t offset;
	uint32_t block;

	if (value < heap->map.lowest || value >= heap->map.highest)
		return HEAP_NONE;
	block = heap_find_block(heap, value, &offset);
	if (block == HEAP_NONE || !marking_is_lost(analysis->marking, block))
		return HEAP_NONE;
	lost = lost_graph_find(analysis->graph, block);
	return lost ? (uint32_t)(lost - analysis->graph->blocks) : HEAP_NONE;
}

/* The next block that @view leads to from *@word on; HEAP_NONE: no more. */
static uint32_t next_target(const struct analysis *analysis, const struct heap_block_view *view,
			    uint64_t *word)
{
	uint64_t end;

	for (; heap_block_next(analysis->marking->heap, view, word, &end); *word = end) {
		while (*word + 8 <= end) {
			uint32_t target = target_of(analysis, load_word(view->bytes + *word));

			*word += 8;
			if (target != HEAP_NONE)
				return target;
		}
	}
	return HEAP_NONE;
}

static void visit(struct analysis *analysis, uint32_t node)
{
	analysis->order[node] = analysis->low[node] = ++analysis->next_order;
	analysis->stack[analysis->nr_stack++] = node;
	analysis->frames[analysis->nr_frames++] = (struct frame){node, 0};
}

/* @node leads back to nothing before it: what is above it on the stack is its component. */
static void close_component(struct analysis *analysis, uint32_t node)
{
	uint32_t nr = analysis->nr_components++, member;

	analysis->first[nr] = node;
	do {
		member = analysis->stack[--analysis->nr_stack];
		analysis->component[member] = nr;
		analysis->sizes[nr]++;
		if (member < analysis->first[nr])
			analysis->first[nr] = member;
	} while (member != node);
}

static void visit_all_from(struct analysis *analysis, uint32_t start)
{
	visit(analysis, start);
	while (analysis->nr_frames) {
		struct frame *frame = &analysis->frames[analysis->nr_frames - 1];
		uint32_t node = frame->node, target;
		struct heap_block_view view;

		heap_block_view(analysis->marking->heap, analysis->graph->blocks[node].block,
				&view);
		target = next_target(analysis, &view, &frame->word);
		if (target == HEAP_NONE) {
			if (analysis->low[node] == analysis->order[node])
				close_component(analysis, node);
			if (--analysis->nr_frames) {
				uint32_t parent = analysis->frames[analysis->nr_frames - 1].node;

				if (analysis->low[node] < analysis->low[parent])
					analysis->low[parent] = analysis->low[node];
			}
		} else if (analysis->order[target] == UNVISITED) {
			visit(analysis, target);
		} else if (analysis->component[target] == HEAP_NONE &&
			   analysis->order[target] < analysis->low[node]) {
			analysis->low[node] = analysis->order[target];
		}
	}
}

static void note_leads(struct analysis *analysis)
{
	for (uint32_t node = 0; node < analysis->graph->nr; node++) {
		struct heap_block_view view;
		uint64_t word = 0;
		uint32_t target;

		heap_block_view(analysis->marking->heap, analysis->graph->blocks[node].block,
				&view);
		while ((target = next_target(analysis, &view, &word)) != HEAP_NONE)
			if (analysis->component[target] != analysis->component[node])
				analysis->is_led_to[analysis->component[target]] = 1;
	}
}

/* Gives @root all that it leads to and that has no root yet. Uses the stack. */
static void claim(struct analysis *analysis, uint32_t node, struct lost_root *root)
{
	struct lost_block *blocks = analysis->graph->blocks;
	uint32_t component = analysis->component[node];

	analysis->nr_stack = 0;
	analysis->stack[analysis->nr_stack++] = node;
	blocks[node].root = root->block;
	while (analysis->nr_stack) {
		uint32_t member = analysis->stack[--analysis->nr_stack], target;
		struct heap_block_view view;
		uint64_t word = 0;

		heap_block_view(analysis->marking->heap, blocks[member].block, &view);
		if (analysis->component[member] == component) {
			blocks[member].kind = root->is_cycle ? LOST_CYCLE : LOST_ROOT;
			root->cycle_blocks += root->is_cycle;
			root->cycle_bytes += root->is_cycle ? view.size_bytes : 0;
		} else {
			root->through_blocks++;
			root->through_bytes += view.size_bytes;
		}
		while ((target = next_target(analysis, &view, &word)) != HEAP_NONE) {
			if (blocks[target].root != HEAP_NONE)
				continue;
			blocks[target].root = root->block;
			analysis->stack[analysis->nr_stack++] = target;
		}
	}
}

static int compare_roots(const void *a, const void *b)
{
	const struct lost_root *x = a, *y = b;
	uint64_t x_total = lost_root_total(x), y_total = lost_root_total(y);

	if (x_total != y_total)
		return x_total > y_total ? -1 : 1;
	return x->block < y->block ? -1 : x->block > y->block;
}

static int find_roots(struct analysis *analysis)
{
	struct lost_graph *graph = analysis->graph;
	size_t nr = 0;

	for (uint32_t i = 0; i < analysis->nr_components; i++)
		nr += !analysis->is_led_to[i];
	graph->roots = calloc(nr + 1, sizeof(*graph->roots));
	if (!graph->roots)
		return -ENOMEM;
	for (uint32_t i = 0; i < analysis->nr_components; i++) {
		struct lost_root *root = &graph->roots[graph->nr_roots];

		if (analysis->is_led_to[i])
			continue;
		root->block = graph->blocks[analysis->first[i]].block;
		root->is_cycle = analysis->sizes[i] > 1;
		root->size_bytes = heap_block_bytes(analysis->marking->heap, root->block);
		claim(analysis, analysis->first[i], root);
		graph->bytes += lost_root_total(root);
		graph->nr_roots++;
	}
	if (graph->nr_roots)
		qsort(graph->roots, graph->nr_roots, sizeof(*graph->roots), compare_roots);
	return 0;
}

static int list_lost(struct lost_graph *graph, const struct marking *marking)
{
	uint32_t nr_blocks = marking->heap->map.nr_blocks;
	size_t nr = 0;

	for (uint32_t i = 0; i < nr_blocks; i++)
		nr += marking_is_lost(marking, i);
	graph->blocks = calloc(nr + 1, sizeof(*graph->blocks));
	if (!graph->blocks)
		return -ENOMEM;
	for (uint32_t i = 0; i < nr_blocks; i++)
		if (marking_is_lost(marking, i))
			graph->blocks[graph->nr++] =
				(struct lost_block){i, HEAP_NONE, LOST_THROUGH};
	return 0;
}

static int allocate(struct analysis *analysis)
{
	size_t nr = analysis->graph->nr + 1;

	analysis->order = calloc(nr, sizeof(uint32_t));
	analysis->low = calloc(nr, sizeof(uint32_t));
	analysis->component = malloc(nr * sizeof(uint32_t));
	analysis->stack = calloc(nr, sizeof(uint32_t));
	analysis->frames = calloc(nr, sizeof(struct frame));
	analysis->is_led_to = calloc(nr, 1);
	analysis->first = calloc(nr, sizeof(uint32_t));
	analysis->sizes = calloc(nr, sizeof(uint32_t));
	if (!analysis->order || !analysis->low || !analysis->component || !analysis->stack ||
	    !analysis->frames || !analysis->is_led_to || !analysis->first || !analysis->sizes)
		return -ENOMEM;
	memset(analysis->component, 0xff, nr * sizeof(uint32_t));
	return 0;
}

int lost_graph_init(struct lost_graph *ret, const struct marking *marking)
{
	struct analysis analysis = {.marking = marking, .graph = ret};
	int err;

	*ret = (struct lost_graph){0};
	err = list_lost(ret, marking);
	if (!err)
		err = allocate(&analysis);
	if (!err) {
		for (uint32_t i = 0; i < ret->nr; i++)
			if (analysis.order[i] == UNVISITED)
				visit_all_from(&analysis, i);
		note_leads(&analysis);
		err = find_roots(&analysis);
	}
	free(analysis.order);
	free(analysis.low);
	free(analysis.component);
	free(analysis.stack);
	free(analysis.frames);
	free(analysis.is_led_to);
	free(analysis.first);
	free(analysis.sizes);
	return err;
}

void lost_graph_deinit(struct lost_graph *graph)
{
	free(graph->blocks);
	free(graph->roots);
	*graph = (struct lost_graph){0};
}
