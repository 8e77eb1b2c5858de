/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/verdicts/leak_report.h"

#include "common/hash.h"
#include "common/scope.h"
#include "parser/statistics/stack_functions.h"
#include "parser/windows/observed_time.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_IDENTITY_FUNCTIONS 128 /* the outermost ones */

/* Whether a stack is wanted. Each is checked once. */
enum stack_answer { STACK_NOT_ASKED, STACK_YES, STACK_NO };

struct chooser {
	struct leak_report *report;
	/* By site of @verdicts. */
	uint8_t *fits;
	struct suppression **suppression;
	bool *suppression_known;
	double unobserved; /* the part of the time */
	size_t window;	   /* of the block that is counted */
};

/* Calls @test with each name that a frame of the stack has, until it returns true. */
static bool any_name(const struct analysis *analysis, uint32_t stack_id,
		     bool (*test)(void *context, const char *name), void *context)
{
	size_t nr = stack_store_nr_frames(analysis->stacks, stack_id);

	for (size_t i = 0; i < nr; i++) {
		const struct stack_frame *frames;
		size_t nr_frames;

		if (stack_store_frames(analysis->stacks, stack_id, i, &frames, &nr_frames))
			continue;
		for (size_t k = 0; k < nr_frames; k++)
			if ((frames[k].function && test(context, frames[k].function)) ||
			    (frames[k].file && test(context, frames[k].file)) ||
			    (frames[k].module && test(context, frames[k].module)))
				return true;
	}
	return false;
}

static bool matches_regex(void *context, const char *name)
{
	return regexec(context, name, 0, NULL, 0) == 0;
}

struct suppression_search {
	const struct suppressions *suppressions;
	struct suppression *found;
};

static bool is_suppressed_name(void *context, const char *name)
{
	struct suppression_search *search = context;

	search->found = suppressions_find(search->suppressions, name);
	return search->found != NULL;
}

static bool wants_stack(const struct leak_report *report, uint32_t stack_id)
{
	regex_t *regex = report->options->stack;

	return !regex || any_name(report->analysis, stack_id, matches_regex, regex);
}

static bool wants_thread(const struct leak_report *report, pid_t tid)
{
	const char *wanted = report->options->thread;
	char number[16];

	if (!wanted)
		return true;
	snprintf(number, sizeof(number), "%d", tid);
	return strcmp(wanted, number) == 0 ||
	       strcmp(wanted, heap_tracker_comm_of(report->analysis->heaps, tid)) == 0;
}

static const struct resource_kind *kind_of_schema(const struct probe_schema *schema)
{
	const struct resource_call *call = resource_call_of(schema);

	return call ? call->kind : NULL;
}

bool leak_report_wants_kind(const struct leak_report *report, const struct resource_kind *kind)
{
	const char *wanted = report->options->kind;

	return !wanted || strcmp(wanted, kind ? kind->name : HEAP_KIND_MEMORY) == 0;
}

const struct resource_kind *leak_report_kind_of(const struct leak_report *report,
						const struct leak_site *site)
{
	const struct site_verdict *verdict = &report->verdicts.sites[site->site];

	return kind_of_schema(
		report->held[report->verdicts.order[verdict->first]].allocated.schema);
}

bool leak_report_has_held(const struct leak_report *report)
{
	return report->nr_sites > 0;
}

uint64_t leak_report_all_bytes(const struct leak_report *report)
{
	uint64_t bytes = report->held_bytes;

	for (size_t i = 0; i < RESOURCE_MAX_KINDS; i++)
		if (__builtin_add_overflow(bytes, report->resources[i].bytes, &bytes))
			return UINT64_MAX;
	return bytes;
}

static bool wants_block(const struct leak_report *report, const struct heap_block *block,
			const struct heap_op *op)
{
	const struct leaks_options *options = report->options;

	return (!options->size ||
		(block->size_known && size_range_has(options->size, block->size_bytes))) &&
	       (!options->pid || options->pid == op->pid) &&
	       (!options->function || strcmp(options->function, op->schema->function) == 0) &&
	       leak_report_wants_kind(report, kind_of_schema(op->schema)) &&
	       wants_thread(report, op->tid);
}

bool leak_report_wants(const struct leak_report *report, const struct heap_block *block,
		       const struct heap_op *op)
{
	return wants_block(report, block, op) && wants_stack(report, op->stack_id);
}

bool leak_report_is_narrowed(const struct leak_report *report)
{
	const struct leaks_options *options = report->options;

	return options->min_age_ns || options->max_age_ns || options->stack || options->pid ||
	       options->thread || options->function || options->kind || options->verdicts ||
	       options->reach;
}

uint64_t leak_report_age_ns(const struct leak_report *report, const struct heap_block *block)
{
	const struct analysis *analysis = report->analysis;
	uint64_t end_ns =
		heap_tracker_life(analysis->heaps, block->allocated.pid, block->allocated.time_ns)
			.end_ns;

	if (end_ns == 0 || end_ns > analysis->end_ns)
		end_ns = analysis->end_ns;
	return end_ns > block->allocated.time_ns ? end_ns - block->allocated.time_ns : 0;
}

/* True if the process that held @block has exited. */
static bool has_exited(const struct leak_report *report, const struct heap_block *block)
{
	uint64_t end_ns = heap_tracker_life(report->analysis->heaps, block->allocated.pid,
					    block->allocated.time_ns)
				  .end_ns;

	return end_ns && end_ns <= report->analysis->end_ns;
}

static enum reach_class reach_class_of(const struct leak_report *report, size_t index)
{
	return report->reach ? (enum reach_class)report->reach[index] : REACH_NOT_SCANNED;
}

enum reach_group leak_report_group_of(const struct leak_report *report, size_t index)
{
	return reach_group_of(reach_class_of(report, index));
}

static bool is_wanted(struct chooser *chooser, size_t index)
{
	const struct leak_report *report = chooser->report;
	const struct leaks_options *options = report->options;
	const struct heap_block *block = &report->held[index];
	const struct block_verdict *verdict = &report->verdicts.blocks[index];
	uint64_t age_ns = leak_report_age_ns(report, block);
	uint8_t *fits = &chooser->fits[verdict->site];

	if (age_ns < options->min_age_ns || (options->max_age_ns && age_ns > options->max_age_ns) ||
	    (options->verdicts && !(options->verdicts & 1u << verdict->verdict)) ||
	    (options->reach && !(options->reach & 1u << reach_class_of(report, index))) ||
	    !wants_block(report, block, &block->allocated))
		return false;
	if (*fits == STACK_NOT_ASKED)
		*fits = wants_stack(report, block->allocated.stack_id) ? STACK_YES : STACK_NO;
	return *fits == STACK_YES;
}

static struct suppression *suppression_of(struct chooser *chooser, size_t index)
{
	const struct leak_report *report = chooser->report;
	uint32_t site = report->verdicts.blocks[index].site;
	struct suppression_search search = {.suppressions = report->options->suppressions};

	if (!search.suppressions || search.suppressions->nr == 0)
		return NULL;
	if (!chooser->suppression_known[site]) {
		any_name(report->analysis, report->held[index].allocated.stack_id,
			 is_suppressed_name, &search);
		chooser->suppression[site] = search.found;
		chooser->suppression_known[site] = true;
	}
	return chooser->suppression[site];
}

static void count_reach(struct leak_reach *to, enum reach_group group, uint64_t bytes)
{
	to->blocks[group]++;
	to->bytes[group] += bytes;
}

/* Blocks of one window are in the sample together, or are not (docs/verdicts.md, "Amounts"). */
static void count_estimate(const struct chooser *chooser, struct leak_estimate *to, size_t index)
{
	const struct heap_block *block = &chooser->report->held[index];
	double blocks = chooser->report->verdicts.blocks[index].stands_for;
	double bytes = blocks * (double)block->size_bytes;

	/* Blocks from before all windows were not observed in one. */
	if (!chooser->window || chooser->window != to->window)
		to->window_blocks = to->window_bytes = 0;
	to->window = chooser->window;
	to->blocks_variance += blocks * (blocks + 2 * chooser->unobserved * to->window_blocks);
	to->bytes_variance += bytes * (bytes + 2 * chooser->unobserved * to->window_bytes);
	to->window_blocks += blocks;
	to->window_bytes += bytes;
	to->blocks += blocks;
	to->bytes += bytes;
}

static void add_reach(struct leak_reach *to, const struct leak_reach *from)
{
	for (int i = 0; i < REACH_NR_GROUPS; i++) {
		to->blocks[i] += from->blocks[i];
		to->bytes[i] += from->bytes[i];
	}
}

/* Asks for each held block what a scan has said. Returns 0 or -ENOMEM. */
static int read_reach(struct leak_report *report)
{
	struct reach *reach = report->analysis->reach;

	report->worst = reach_worst_group(reach);
	if (!reach_has_any(reach))
		return 0;
	report->reach = calloc(report->nr_held + 1, sizeof(*report->reach));
	report->holders = calloc(report->nr_held + 1, sizeof(*report->holders));
	if (!report->reach || !report->holders)
		return -ENOMEM;
	for (size_t i = 0; i < report->nr_held; i++) {
		report->reach[i] = (uint8_t)reach_of(reach, &report->held[i]);
		if (reach_group_has_holders(leak_report_group_of(report, i)))
			report->holders[i] = reach_holder_of(reach, &report->held[i]);
	}
	return 0;
}

static void choose(struct chooser *chooser, size_t index)
{
	struct leak_report *report = chooser->report;
	const struct heap_block *block = &report->held[index];
	struct leak_site *site = &report->sites[report->verdicts.blocks[index].site];
	uint32_t cause = report->verdicts.sites[report->verdicts.blocks[index].site].cause;
	enum verdict verdict = (enum verdict)report->verdicts.blocks[index].verdict;
	struct suppression *suppression = suppression_of(chooser, index);
	enum reach_group group = leak_report_group_of(report, index);

	if (suppression)
		suppression->used = true;
	if (!is_wanted(chooser, index)) {
		report->choices[index] = LEAK_FILTERED;
		return;
	}
	if (suppression) {
		suppression->blocks++;
		suppression->bytes += block->size_bytes;
		report->suppressed_blocks++;
		report->suppressed_bytes += block->size_bytes;
		report->choices[index] = LEAK_SUPPRESSED;
		return;
	}
	site->blocks++;
	site->bytes += block->size_bytes;
	site->firm_blocks += !report->verdicts.blocks[index].doubts;
	count_reach(&site->reach, group, block->size_bytes);
	chooser->window = observed_time_nr_before(heap_tracker_observed(report->analysis->heaps),
						  block->allocated.time_ns);
	count_estimate(chooser, &site->estimate, index);
	count_estimate(chooser, &report->causes[cause].estimate, index);
	count_estimate(chooser, &report->estimate_of_all[verdict], index);
	if (verdict_is_leak(verdict))
		count_estimate(chooser, &report->estimate_leaked, index);
	if (kind_of_schema(block->allocated.schema))
		return;
	report->exited_blocks += has_exited(report, block);
	report->blocks_of[verdict]++;
	report->bytes_of[verdict] += block->size_bytes;
	count_estimate(chooser, &report->estimate, index);
	count_estimate(chooser, &report->estimate_of[verdict], index);
	count_reach(&report->reach_of[verdict], group, block->size_bytes);
}

static int choose_all(struct leak_report *report)
{
	size_t nr = report->verdicts.nr_sites + 1;
	_cleanup_free_ uint8_t *fits = calloc(nr, sizeof(*fits));
	_cleanup_free_ struct suppression **suppression = calloc(nr, sizeof(struct suppression *));
	_cleanup_free_ bool *known = calloc(nr, sizeof(*known));
	struct chooser chooser = {
		report, fits, suppression, known, 1 - analysis_observed_share(report->analysis), 0};

	if (!fits || !suppression || !known)
		return -ENOMEM;
	/* A report before this one may have counted. */
	if (report->options->suppressions)
		suppressions_reset(report->options->suppressions);
	for (size_t i = 0; i < report->nr_held; i++)
		choose(&chooser, i);
	return 0;
}

static int compare_bytes(const void *a, const void *b)
{
	const struct leak_site *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	return (x->site > y->site) - (x->site < y->site);
}

static int compare_cause_bytes(const void *a, const void *b)
{
	const struct leak_cause *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	return (x->cause > y->cause) - (x->cause < y->cause);
}

/* What nothing leads to comes first, proven lost or not; the rest stays in its order. */
static int compare_lost(const struct leak_reach *x, const struct leak_reach *y)
{
	uint64_t x_bytes = x->bytes[REACH_GROUP_LOST] + x->bytes[REACH_GROUP_NO_HOLDER];
	uint64_t y_bytes = y->bytes[REACH_GROUP_LOST] + y->bytes[REACH_GROUP_NO_HOLDER];

	return (x_bytes < y_bytes) - (x_bytes > y_bytes);
}

static int compare_lost_sites(const void *a, const void *b)
{
	const struct leak_site *x = a, *y = b;
	int order = compare_lost(&x->reach, &y->reach);

	return order ? order : (x->site > y->site) - (x->site < y->site);
}

static int compare_lost_causes(const void *a, const void *b)
{
	const struct leak_cause *x = a, *y = b;
	int order = compare_lost(&x->reach, &y->reach);

	return order ? order : (x->first > y->first) - (x->first < y->first);
}

/* Groups the listed sites, which are in the order of causes: none is written before it is read. */
static void arrange_causes(struct leak_report *report)
{
	for (size_t i = 0; i < report->nr_sites; i++) {
		const struct leak_site *site = &report->sites[i];
		uint32_t index = report->verdicts.sites[site->site].cause;
		struct leak_cause *cause = &report->causes[report->nr_causes];

		report->sites_by_cause[i] = *site;
		if (i == 0 || cause[-1].cause != index) {
			*cause = (struct leak_cause){.cause = index,
						     .first = i,
						     .estimate = report->causes[index].estimate};
			report->nr_causes++;
		} else {
			cause--;
		}
		cause->nr++;
		cause->blocks += site->blocks;
		cause->bytes += site->bytes;
		add_reach(&cause->reach, &site->reach);
	}
	if (report->options->order == LEAK_ORDER_SIZE)
		qsort(report->causes, report->nr_causes, sizeof(*report->causes),
		      compare_cause_bytes);
	else if (report->reach)
		qsort(report->causes, report->nr_causes, sizeof(*report->causes),
		      compare_lost_causes);
}

/* Keeps the sites with listed blocks, sorts them, and adds up. */
static void arrange_sites(struct leak_report *report)
{
	for (size_t i = 0; i < report->verdicts.nr_sites; i++) {
		const struct site_verdict *verdict = &report->verdicts.sites[i];
		struct leak_site site = report->sites[i];
		uint64_t explained = verdict->held_blocks - verdict->firm_blocks;
		const struct resource_kind *kind;

		site.site = (uint32_t)i;
		if (!site.blocks)
			continue;
		/* What explains some of its doubtful blocks may explain just the shown ones. */
		if (site.blocks > site.firm_blocks + explained)
			site.firm_blocks = site.blocks - explained;
		report->sites[report->nr_sites++] = site;
		kind = leak_report_kind_of(report, &site);
		if (kind) {
			struct leak_resource *resource = &report->resources[kind->number - 1];

			resource->blocks += site.blocks;
			resource->bytes += site.bytes;
			resource->sites++;
			continue;
		}
		report->memory_sites++;
		report->held_blocks += site.blocks;
		report->held_bytes += site.bytes;
		report->sites_of[verdict->verdict]++;
		report->firm_blocks += site.firm_blocks;
	}
	arrange_causes(report);
	if (report->options->order == LEAK_ORDER_SIZE)
		qsort(report->sites, report->nr_sites, sizeof(*report->sites), compare_bytes);
	else if (report->reach)
		qsort(report->sites, report->nr_sites, sizeof(*report->sites), compare_lost_sites);
	report->nr_listed_sites = report->nr_sites;
	if (report->options->limit && !report->options->limit_is_of_causes &&
	    report->options->limit < report->nr_sites)
		report->nr_listed_sites = report->options->limit;
	/* The sites after them are not listed. */
	for (size_t i = report->nr_listed_sites; i < report->nr_sites; i++) {
		const struct site_verdict *site = &report->verdicts.sites[report->sites[i].site];

		for (size_t j = 0; j < site->held_blocks; j++) {
			uint8_t *choice = &report->choices[report->verdicts.order[site->first + j]];

			if (*choice == LEAK_LISTED)
				*choice = LEAK_FILTERED;
		}
	}
}

static struct process_life process_life(const void *context, pid_t pid, uint64_t time_ns)
{
	return heap_tracker_life(context, pid, time_ns);
}

int leak_report_stack_identity(const struct leak_report *report, uint32_t stack_id, uint64_t *ret)
{
	uint64_t functions[MAX_IDENTITY_FUNCTIONS];
	size_t nr;
	int err = stack_functions_of(report->analysis->stacks, stack_id, functions,
				     ARRAY_SIZE(functions), &nr);

	if (!err)
		*ret = hash_words(functions, nr, hash_seed());
	return err;
}

static const struct followed_block *followed(const void *context, const struct heap_block *block)
{
	return heap_tracker_followed(context, block);
}

static int judge(struct leak_report *report)
{
	const struct analysis *analysis = report->analysis;
	const struct heap_tracker_stats *stats = heap_tracker_stats(analysis->heaps);
	const struct verdict_input input = {
		.sites = heap_tracker_sites(analysis->heaps),
		.held = report->held,
		.nr_held = report->nr_held,
		.start_ns = analysis->start_ns,
		.end_ns = analysis->end_ns,
		.process_life = process_life,
		.context = analysis->heaps,
		.functions_of = stack_functions_of,
		.places_of = stack_places_of,
		.has_call = stack_has_call,
		.stacks = analysis->stacks,
		.calls = &analysis->calls,
		.observed = report->in_windows ? heap_tracker_observed(analysis->heaps) : NULL,
		.followed = followed,
		.memory_bytes = memory_usage_most(analysis->memory),
		.reach = report->reach,
		.loss_windows = analysis->loss_windows,
		.lost_any_time = analysis->lost_any_time,
		.lost_unknown = analysis->unguarded_tasks > 0,
		.truncated = analysis->input.truncated,
		.partial = analysis->input.command.partial != NULL,
		.unpaired_reallocs = stats->unpaired_reallocs,
		.last_unpaired_realloc_ns = stats->last_unpaired_realloc_ns,
	};

	return verdicts_init(&report->verdicts, &input);
}

static int find_own_wrappers(struct leak_report *report)
{
	const struct verdicts *verdicts = &report->verdicts;
	struct own_wrappers_input input = {
		.frames_of = own_wrappers_frames,
		.stacks = report->analysis->stacks,
	};
	_cleanup_free_ bool *leaks = NULL;

	input.sites = site_stats_list(heap_tracker_sites(report->analysis->heaps), &input.nr_sites);
	leaks = calloc(input.nr_sites + 1, sizeof(*leaks));
	if (!leaks)
		return -ENOMEM;
	for (size_t i = 0; i < verdicts->nr_sites; i++)
		leaks[verdicts->sites[i].site - input.sites] |=
			verdict_is_leak(verdicts->sites[i].verdict);
	input.leaks = leaks;
	return own_wrappers_find(&report->wrappers, &input);
}

/* Anomalies that were not listed cannot be filtered, so they count only without filters. */
static void count_anomalies(struct leak_report *report)
{
	const struct heap_tracker *heaps = report->analysis->heaps;
	const struct heap_anomaly *anomalies;
	size_t nr;

	anomalies = heap_tracker_anomalies(heaps, &nr);
	for (size_t i = 0; i < nr; i++)
		report->anomalies[anomalies[i].kind] +=
			leak_report_wants(report, &anomalies[i].block, &anomalies[i].op);
	if (leak_report_is_narrowed(report) || report->options->size)
		return;
	for (size_t i = 0; i < ANOMALY_NR_KINDS; i++)
		report->anomalies[i] += heap_tracker_unlisted(heaps)[i];
}

int leak_report_init(struct leak_report *report, struct analysis *analysis,
		     const struct leaks_options *options)
{
	int err;

	*report = (struct leak_report){
		.analysis = analysis,
		.options = options,
		.in_windows = analysis_is_in_windows(analysis),
	};
	err = heap_tracker_held(analysis->heaps, &report->held, &report->nr_held);
	if (!err)
		err = read_reach(report);
	if (!err)
		err = judge(report);
	if (!err)
		err = find_own_wrappers(report);
	if (err)
		return err;
	report->choices = calloc(report->nr_held + 1, sizeof(*report->choices));
	report->sites = calloc(report->verdicts.nr_sites + 1, sizeof(*report->sites));
	report->sites_by_cause = calloc(report->verdicts.nr_sites + 1, sizeof(*report->sites));
	report->causes = calloc(report->verdicts.nr_causes + 1, sizeof(*report->causes));
	if (!report->choices || !report->sites || !report->sites_by_cause || !report->causes)
		return -ENOMEM;
	err = choose_all(report);
	if (err)
		return err;
	arrange_sites(report);
	count_anomalies(report);
	return 0;
}

void leak_report_deinit(struct leak_report *report)
{
	verdicts_deinit(&report->verdicts);
	free(report->choices);
	free(report->reach);
	free(report->holders);
	free(report->sites);
	free(report->sites_by_cause);
	free(report->causes);
	*report = (struct leak_report){0};
}
