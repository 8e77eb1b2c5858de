/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/html/html_tables.h"

#include "report/text/cause_holder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Limits that keep the page fast to open. */
#define MAX_NODES	   2000000
#define MAX_RELEASED_SITES 50000
#define MAX_NAME_BYTES	   2000
/* Beyond so many blocks, similar ones become one point with a count. */
#define MANY_BLOCKS 200000
#define TIME_STEPS  8192

/* Stores the index of @text, or HTML_NONE. Very long names are cut. */
static int add_string(struct html_tables *tables, const char *text, uint32_t *ret)
{
	char cut[MAX_NAME_BYTES + 1];
	const char *name;
	int err;

	*ret = HTML_NONE;
	if (!text)
		return 0;
	if (strnlen(text, sizeof(cut)) == sizeof(cut)) {
		memcpy(cut, text, MAX_NAME_BYTES);
		cut[MAX_NAME_BYTES] = '\0';
		text = cut;
	}
	err = name_pool_add(tables->names, text, &name);
	if (err)
		return err;
	*ret = name_pool_number(name);
	/* Names were numbered when their stack was loaded, so they come in any order. */
	if (*ret >= tables->max_strings) {
		size_t max = ((size_t)*ret + 1) * 2;
		const char **strings = realloc(tables->strings, max * sizeof(*strings));

		if (!strings)
			return -ENOMEM;
		tables->strings = strings;
		tables->max_strings = max;
	}
	while (tables->nr_strings <= *ret)
		tables->strings[tables->nr_strings++] = "";
	tables->strings[*ret] = name;
	return 0;
}

static int add_frame(struct html_tables *tables, const struct named_frame *frame, uint32_t *ret)
{
	uint32_t line = frame->line > 0 ? (uint32_t)frame->line : 0;
	uint32_t name, module, file, function;
	int err = add_string(tables, frame->name, &name);

	if (!err)
		err = add_string(tables, frame->module, &module);
	if (!err)
		err = add_string(tables, frame->file, &file);
	if (!err)
		err = row_set_add(&tables->functions, (struct row){{name, module, 0}}, &function);
	if (err)
		return err;
	if (frame->inlined)
		line |= HTML_LINE_INLINED;
	return row_set_add(&tables->frames, (struct row){{function, file, line}}, ret);
}

/*
 * Adds the nodes of the site's stack, from its outermost frame inwards. @function gave the blocks;
 * NULL: that is not known.
 */
static int add_stack(struct html_tables *tables, struct html_site *site, const char *function)
{
	struct named_stack *stack = &tables->stack;
	int err = named_stack_load(stack, tables->report->analysis->stacks, site->site->stack_id);
	size_t i = stack->nr, user = named_stack_user_frame(stack, function);
	size_t shared = site->verdict ? site->verdict->nr_shared : 0, caller = user;

	if (shared && shared < stack->nr && stack->nr - shared > user)
		caller = stack->nr - shared;
	site->node = HTML_NONE;
	while (!err && i > 0) {
		uint32_t frame;

		if (tables->nodes.nr >= MAX_NODES) {
			tables->nr_cut++;
			break;
		}
		err = add_frame(tables, &stack->frames[--i], &frame);
		if (!err)
			err = row_set_add(&tables->nodes, (struct row){{site->node, frame, 0}},
					  &site->node);
		if (i >= caller)
			site->caller = site->node;
	}
	/* The page lacks the innermost @i frames. */
	site->user = (uint32_t)(user > i ? user - i : 0);
	return err;
}

static int add_thread(struct html_tables *tables, const struct heap_op *op, uint32_t *ret)
{
	const char *comm = heap_tracker_comm_of(tables->report->analysis->heaps, op->tid);
	uint32_t name;
	int err = add_string(tables, *comm ? comm : "?", &name);

	return err ? err
		   : row_set_add(&tables->threads,
				 (struct row){{(uint32_t)op->pid, (uint32_t)op->tid, name}}, ret);
}

/* Whether two leaks would be the same point on the screen. */
static bool is_alike(const struct html_tables *tables, const struct html_leak *leak,
		     const struct html_leak *next)
{
	const struct leak_report *report = tables->report;
	const struct heap_block *a = &report->held[leak->block], *b = &report->held[next->block];
	const struct block_verdict *va = &report->verdicts.blocks[leak->block];
	const struct block_verdict *vb = &report->verdicts.blocks[next->block];
	uint64_t step_ns = (report->analysis->end_ns - report->analysis->start_ns) / TIME_STEPS + 1;

	return leak->site == next->site && leak->thread == next->thread &&
	       a->size_bytes == b->size_bytes && va->verdict == vb->verdict &&
	       va->doubts == vb->doubts &&
	       leak_report_group_of(report, leak->block) ==
		       leak_report_group_of(report, next->block) &&
	       a->allocated.time_ns / step_ns == b->allocated.time_ns / step_ns;
}

static int add_leaks(struct html_tables *tables, const struct site_verdict *verdict, uint32_t site)
{
	const struct leak_report *report = tables->report;
	bool merge = report->nr_held > MANY_BLOCKS;

	for (size_t i = 0; i < verdict->held_blocks; i++) {
		struct html_leak leak = {.site = site, .count = 1};
		struct html_leak *last = tables->leaks + tables->nr_leaks - 1;
		int err;

		leak.block = report->verdicts.order[verdict->first + i];
		if (report->choices[leak.block] != LEAK_LISTED)
			continue;
		err = add_thread(tables, &report->held[leak.block].allocated, &leak.thread);
		if (err)
			return err;
		if (merge && tables->nr_leaks && is_alike(tables, last, &leak))
			last->count++;
		else
			tables->leaks[tables->nr_leaks++] = leak;
	}
	return 0;
}

/* Stores in @rows the row of each of verdicts.sites. */
static int add_held_sites(struct html_tables *tables, uint32_t *rows)
{
	const struct leak_report *report = tables->report;
	int err = 0;

	for (size_t i = 0; !err && i < report->nr_listed_sites; i++) {
		const struct leak_site *listed = &report->sites[i];
		const struct site_verdict *verdict = &report->verdicts.sites[listed->site];
		const struct heap_block *first =
			&report->held[report->verdicts.order[verdict->first]];
		struct html_site *site = &tables->sites[tables->nr_sites];

		*site = (struct html_site){
			.site = verdict->site,
			.verdict = verdict,
			.blocks = listed->blocks,
			.bytes = listed->bytes,
			.caller = HTML_NONE,
			.holder = cause_holder_find(report, listed, 1).holder,
			.cause = HTML_NONE,
			.firm_blocks = listed->firm_blocks,
		};
		rows[listed->site] = (uint32_t)tables->nr_sites;
		err = add_stack(tables, site, first->allocated.schema->function);
		if (!err)
			err = add_leaks(tables, verdict, (uint32_t)tables->nr_sites++);
	}
	return err;
}

static int compare_allocated(const void *a, const void *b)
{
	const struct html_site *site_a = a, *site_b = b;
	uint64_t bytes_a = site_a->site->allocated_bytes, bytes_b = site_b->site->allocated_bytes;

	return bytes_a < bytes_b ? 1 : bytes_a > bytes_b ? -1 : 0;
}

/* Adds the sites of @list that hold nothing, by descending allocated bytes. */
static int add_released_sites(struct html_tables *tables, const struct site *list, size_t nr,
			      bool *holds)
{
	const struct verdicts *verdicts = &tables->report->verdicts;
	struct html_site *first = tables->sites + tables->nr_sites;
	size_t nr_added = 0;
	int err = 0;

	for (size_t i = 0; i < verdicts->nr_sites; i++)
		holds[verdicts->sites[i].site - list] = true;
	for (size_t i = 0; i < nr; i++)
		if (!holds[i])
			first[nr_added++] =
				(struct html_site){.site = &list[i], .cause = HTML_NONE};
	if (nr_added)
		qsort(first, nr_added, sizeof(*first), compare_allocated);
	if (nr_added > MAX_RELEASED_SITES) {
		tables->nr_left_out = nr_added - MAX_RELEASED_SITES;
		nr_added = MAX_RELEASED_SITES;
	}
	for (size_t i = 0; !err && i < nr_added; i++)
		err = add_stack(tables, &first[i], NULL);
	tables->nr_sites += nr_added;
	return err;
}

/* Adds a cause: the row of its only listed site, or a new row for all of them. */
static void add_cause(struct html_tables *tables, const struct leak_cause *cause,
		      const uint32_t *rows)
{
	const struct leak_report *report = tables->report;
	struct html_site *sum = &tables->sites[tables->nr_sites];
	uint32_t first = HTML_NONE, nr = 0;

	*sum = (struct html_site){.verdict = &report->verdicts.causes[cause->cause].verdict,
				  .caller = HTML_NONE,
				  .cause = HTML_NONE};
	sum->site = sum->verdict->site;
	for (size_t i = 0; i < cause->nr; i++) {
		uint32_t row = rows[report->sites_by_cause[cause->first + i].site];

		if (row == HTML_NONE)
			continue; /* beyond options.limit */
		first = nr++ ? first : row;
		sum->blocks += tables->sites[row].blocks;
		sum->bytes += tables->sites[row].bytes;
		sum->firm_blocks += tables->sites[row].firm_blocks;
	}
	if (nr < 2) {
		if (nr)
			tables->causes[tables->nr_causes++] = first;
		return;
	}
	sum->node = tables->sites[first].caller;
	sum->holder =
		cause_holder_find(report, &report->sites_by_cause[cause->first], cause->nr).holder;
	for (size_t i = 0; i < cause->nr; i++) {
		uint32_t row = rows[report->sites_by_cause[cause->first + i].site];

		if (row != HTML_NONE)
			tables->sites[row].cause = (uint32_t)tables->nr_sites;
	}
	tables->causes[tables->nr_causes++] = (uint32_t)tables->nr_sites++;
}

static int add_sites(struct html_tables *tables, const struct site *list, size_t nr, bool *holds,
		     uint32_t *rows)
{
	const struct leak_report *report = tables->report;
	int err;

	memset(rows, 0xff, report->verdicts.nr_sites * sizeof(*rows)); /* HTML_NONE */
	err = add_held_sites(tables, rows);
	if (!err)
		err = add_released_sites(tables, list, nr, holds);
	tables->nr_stacks = tables->nr_sites;
	for (size_t i = 0; !err && i < report->nr_causes; i++)
		add_cause(tables, &report->causes[i], rows);
	return err;
}

int html_tables_init(struct html_tables *tables, const struct leak_report *report)
{
	size_t nr;
	const struct site *list = site_stats_list(heap_tracker_sites(report->analysis->heaps), &nr);
	bool *holds = calloc(nr + 1, sizeof(*holds));
	uint32_t *rows = calloc(report->verdicts.nr_sites + 1, sizeof(*rows));
	/* A site of @list may be listed twice (verdict_types.h). */
	size_t max_sites = nr + report->nr_listed_sites + report->nr_causes + 1;
	int err = -ENOMEM;

	*tables = (struct html_tables){
		.report = report,
		.names = name_pool_create(),
		.sites = calloc(max_sites, sizeof(*tables->sites)),
		.causes = calloc(report->nr_causes + 1, sizeof(*tables->causes)),
		.leaks = calloc(report->nr_held + 1, sizeof(*tables->leaks)),
	};
	tables->stack.names = tables->names;
	tables->stack.wrappers = &report->wrappers;
	if (holds && rows && tables->names && tables->sites && tables->causes && tables->leaks)
		err = add_sites(tables, list, nr, holds, rows);
	free(holds);
	free(rows);
	return err;
}

void html_tables_deinit(struct html_tables *tables)
{
	named_stack_deinit(&tables->stack);
	name_pool_destroy(tables->names);
	free(tables->strings);
	row_set_deinit(&tables->functions);
	row_set_deinit(&tables->frames);
	row_set_deinit(&tables->nodes);
	row_set_deinit(&tables->threads);
	free(tables->sites);
	free(tables->causes);
	free(tables->leaks);
	*tables = (struct html_tables){0};
}
