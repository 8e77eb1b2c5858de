/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Strongly connected components by the algorithm of D. J. Pearce ("A Space-Efficient Algorithm for
 * Finding Strongly Connected Components", Information Processing Letters 116, 2016), without
 * recursion.
 */
#include "scan/marking/lost_graph.h"

#include "common/partition_point.h"

#include <errno.h>
#include <stdlib.h>

/* Arrays are by the place of a block in the graph's list. */
struct analysis {
	const struct marking *marking;
	struct lost_graph *graph;
	/*
	 * 0: not visited. Of a block without a component, when it was visited, or when the earliest
	 * one was that it leads back to: from 1 on. Then its component: from the number of blocks
	 * down. So components always have the larger numbers.
	 */
	uint32_t *numbers;
	/*
	 * From the front, the way to the block that is visited; from the back, blocks that were
	 * visited and have no component. Each block is in one of them.
	 */
	uint32_t *stack;
	uint32_t *progress; /* by place on the way: how much of that block was looked through */
	size_t nr_way, nr_open;
	uint32_t next_number, next_component;
	/* Bits, by component: another one leads to it; it has blocks; it has several. */
	uint64_t *is_led_to, *has_block, *has_several;
};

static bool is_set(const uint64_t *bits, uint32_t i)
{
	return bits[i / 64] >> (i % 64) & 1;
}

static void set(uint64_t *bits, uint32_t i)
{
	bits[i / 64] |= 1ull << (i % 64);
}

const struct lost_block *lost_graph_find(const struct lost_graph *graph, uint32_t block)
{
	size_t first = partition_point(graph->nr, i, graph->blocks[i].block < block);

	return first < graph->nr && graph->blocks[first].block == block ? &graph->blocks[first]
									: NULL;
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
	analysis->numbers[node] = analysis->next_number++;
	analysis->progress[analysis->nr_way] = 0;
	analysis->stack[analysis->nr_way++] = node;
}

/* @node leads to @target: perhaps back to an earlier block. */
static void note_target(struct analysis *analysis, uint32_t node, uint32_t target)
{
	if (analysis->numbers[target] >= analysis->numbers[node])
		return;
	analysis->numbers[node] = analysis->numbers[target];
	/* Until its component is known, this stands for "leads back". */
	analysis->graph->blocks[node].is_cycle = 1;
}

/* All that the last block of the way leads to was visited. */
static void leave(struct analysis *analysis)
{
	size_t end = analysis->graph->nr;
	uint32_t node = analysis->stack[--analysis->nr_way], nr = analysis->next_component;

	if (analysis->graph->blocks[node].is_cycle) {
		analysis->stack[end - ++analysis->nr_open] = node;
	} else {
		for (; analysis->nr_open; analysis->nr_open--) {
			uint32_t member = analysis->stack[end - analysis->nr_open];

			if (analysis->numbers[member] < analysis->numbers[node])
				break;
			analysis->numbers[member] = nr;
			analysis->next_number--;
		}
		analysis->numbers[node] = nr;
		analysis->next_number--;
		analysis->next_component--;
	}
	if (analysis->nr_way)
		note_target(analysis, analysis->stack[analysis->nr_way - 1], node);
}

static void visit_all_from(struct analysis *analysis, uint32_t start)
{
	visit(analysis, start);
	while (analysis->nr_way) {
		size_t place = analysis->nr_way - 1;
		uint32_t node = analysis->stack[place], target;
		struct heap_block_view view;
		uint64_t step, word;

		heap_block_view(analysis->marking->heap, analysis->graph->blocks[node].block,
				&view);
		/* In 32 bits. Of a huge block, some words are looked at twice. */
		step = 8 * (1 + (view.size_bytes >> 35));
		word = analysis->progress[place] * step;
		while ((target = next_target(analysis, &view, &word)) != HEAP_NONE &&
		       analysis->numbers[target])
			note_target(analysis, node, target);
		analysis->progress[place] = (uint32_t)(word / step);
		if (target == HEAP_NONE)
			leave(analysis);
		else
			visit(analysis, target);
	}
}

static void note_components(struct analysis *analysis)
{
	const uint32_t *numbers = analysis->numbers;

	for (uint32_t node = 0; node < analysis->graph->nr; node++) {
		struct heap_block_view view;
		uint64_t word = 0;
		uint32_t target;

		if (is_set(analysis->has_block, numbers[node]))
			set(analysis->has_several, numbers[node]);
		set(analysis->has_block, numbers[node]);
		heap_block_view(analysis->marking->heap, analysis->graph->blocks[node].block,
				&view);
		while ((target = next_target(analysis, &view, &word)) != HEAP_NONE)
			if (numbers[target] != numbers[node])
				set(analysis->is_led_to, numbers[target]);
	}
}

/* Gives @root all that it leads to and that has no root yet. Uses the stack. */
static void claim(struct analysis *analysis, uint32_t node, struct lost_root *root)
{
	struct lost_block *blocks = analysis->graph->blocks;
	uint32_t component = analysis->numbers[node];
	bool is_cycle = is_set(analysis->has_several, component);
	size_t nr = 0;

	analysis->stack[nr++] = node;
	blocks[node].root = root->block;
	while (nr) {
		uint32_t member = analysis->stack[--nr], target;
		bool is_own = analysis->numbers[member] == component;
		struct heap_block_view view;
		uint64_t word = 0;

		heap_block_view(analysis->marking->heap, blocks[member].block, &view);
		blocks[member].is_cycle = is_own && is_cycle;
		root->cycle_blocks += is_own && is_cycle;
		root->through_blocks += !is_own;
		*(is_own ? &root->own_bytes : &root->through_bytes) += view.size_bytes;
		while ((target = next_target(analysis, &view, &word)) != HEAP_NONE) {
			if (blocks[target].root != LOST_NO_ROOT)
				continue;
			blocks[target].root = root->block;
			analysis->stack[nr++] = target;
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

	/* Each component without a way to it is a root; its first block stands for it. */
	for (uint32_t i = 1; i <= graph->nr; i++)
		nr += is_set(analysis->has_block, i) && !is_set(analysis->is_led_to, i);
	graph->roots = calloc(nr + 1, sizeof(*graph->roots));
	if (!graph->roots)
		return -ENOMEM;
	for (uint32_t i = 0; i < graph->nr; i++) {
		struct lost_root *root = &graph->roots[graph->nr_roots];

		if (graph->blocks[i].root != LOST_NO_ROOT ||
		    is_set(analysis->is_led_to, analysis->numbers[i]))
			continue;
		root->block = graph->blocks[i].block;
		claim(analysis, i, root);
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

	for (uint32_t i = marking_next(marking, 0); i < nr_blocks; i = marking_next(marking, i + 1))
		nr += marking_is_lost(marking, i);
	graph->blocks = calloc(nr + 1, sizeof(*graph->blocks));
	if (!graph->blocks)
		return -ENOMEM;
	for (uint32_t i = marking_next(marking, 0); i < nr_blocks; i = marking_next(marking, i + 1))
		if (marking_is_lost(marking, i))
			graph->blocks[graph->nr++] = (struct lost_block){i, LOST_NO_ROOT, 0};
	return 0;
}

static int allocate(struct analysis *analysis)
{
	size_t nr = analysis->graph->nr, nr_words = nr / 64 + 1;

	analysis->next_number = 1;
	analysis->next_component = (uint32_t)nr;
	analysis->numbers = calloc(nr + 1, sizeof(uint32_t));
	analysis->stack = calloc(nr + 1, sizeof(uint32_t));
	analysis->progress = calloc(nr + 1, sizeof(uint32_t));
	analysis->is_led_to = calloc(nr_words, sizeof(uint64_t));
	analysis->has_block = calloc(nr_words, sizeof(uint64_t));
	analysis->has_several = calloc(nr_words, sizeof(uint64_t));
	return analysis->numbers && analysis->stack && analysis->progress && analysis->is_led_to &&
			       analysis->has_block && analysis->has_several
		       ? 0
		       : -ENOMEM;
}

int lost_graph_init(struct lost_graph *ret, const struct marking *marking)
{
	struct analysis analysis = {.marking = marking, .graph = ret};
	int err;

	*ret = (struct lost_graph){0};
	err = list_lost(ret, marking);
	if (!err)
		err = allocate(&analysis);
	for (uint32_t i = 0; !err && i < ret->nr; i++)
		if (!analysis.numbers[i])
			visit_all_from(&analysis, i);
	/* The roots may need its memory. */
	free(analysis.progress);
	if (!err) {
		note_components(&analysis);
		err = find_roots(&analysis);
	}
	free(analysis.numbers);
	free(analysis.stack);
	free(analysis.is_led_to);
	free(analysis.has_block);
	free(analysis.has_several);
	return err;
}

void lost_graph_deinit(struct lost_graph *graph)
{
	free(graph->blocks);
	free(graph->roots);
	*graph = (struct lost_graph){0};
}
