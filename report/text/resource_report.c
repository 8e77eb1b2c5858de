/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/text/resource_report.h"

#include "common/diag.h"
#include "common/quantity.h"
#include "report/text/leak_words.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

bool resource_report_has_any(const struct leak_report *report)
{
	const struct resource_counts *counts = heap_tracker_resources(report->analysis->heaps);

	for (size_t i = 0; i < RESOURCE_MAX_KINDS; i++)
		if (counts[i].kind && leak_report_wants_kind(report, counts[i].kind))
			return true;
	return false;
}

void resource_report_check_kind(const struct heap_tracker *heaps, const char *kind)
{
	const struct resource_counts *counts = heap_tracker_resources(heaps);
	char kinds[RESOURCE_MAX_KINDS * (RESOURCE_KIND_MAX + 2) + 1] = "";
	size_t len = 0;

	if (!kind || strcmp(kind, HEAP_KIND_MEMORY) == 0)
		return;
	for (size_t i = 0; i < RESOURCE_MAX_KINDS; i++) {
		if (!counts[i].kind)
			continue;
		if (strcmp(counts[i].kind->name, kind) == 0)
			return;
		len += (size_t)snprintf(kinds + len, sizeof(kinds) - len, ", %s",
					counts[i].kind->name);
	}
	diag_warn("no resource of kind %s was recorded; the recorded kinds are " HEAP_KIND_MEMORY
		  "%s",
		  kind, kinds);
}

/* "120 given, 110 taken" */
static void write_counts(FILE *out, const struct resource_counts *counts)
{
	fprintf(out, "%" PRIu64 " given, %" PRIu64 " taken", counts->gives, counts->takes);
	if (counts->kind->counts_refs)
		fprintf(out, ", %" PRIu64 " reference%s added, %" PRIu64 " dropped", counts->refs,
			quantity_plural(counts->refs), counts->unrefs);
	if (counts->failures)
		fprintf(out, ", %" PRIu64 " failed", counts->failures);
	if (counts->unknown_takes)
		fprintf(out, ", %" PRIu64 " taken without a recorded give", counts->unknown_takes);
	if (counts->unpaired)
		fprintf(out, ", %" PRIu64 " call%s recorded in part", counts->unpaired,
			quantity_plural(counts->unpaired));
}

void resource_report_write_kinds(FILE *out, const struct leak_report *report)
{
	const struct resource_counts *counts = heap_tracker_resources(report->analysis->heaps);

	for (size_t i = 0; i < RESOURCE_MAX_KINDS; i++) {
		if (!counts[i].kind || !leak_report_wants_kind(report, counts[i].kind))
			continue;
		fprintf(out, "# resource %s: ", counts[i].kind->name);
		write_counts(out, &counts[i]);
		fprintf(out, "; %" PRIu64 " held\n", report->resources[i].blocks);
	}
}

int resource_report_write_summary(FILE *out, const struct leak_report *report)
{
	const struct resource_counts *counts = heap_tracker_resources(report->analysis->heaps);
	int nr_lines = 0;

	for (size_t i = 0; i < RESOURCE_MAX_KINDS; i++) {
		const struct leak_resource *held = &report->resources[i];

		if (!counts[i].kind || !leak_report_wants_kind(report, counts[i].kind))
			continue;
		leak_words_held(out, counts[i].kind, held->blocks, held->bytes);
		if (held->blocks)
			fprintf(out, " in %" PRIu64 " stack%s,", held->sites,
				quantity_plural(held->sites));
		fputs(" held ", out);
		leak_words_moment(out, report->analysis);
		fputs(": ", out);
		write_counts(out, &counts[i]);
		fputc('\n', out);
		nr_lines++;
	}
	return nr_lines;
}

void resource_report_write_counts(FILE *out, const struct leak_report *report,
				  const struct heap_block *block)
{
	const struct ref_object *object = heap_tracker_refs(report->analysis->heaps, block);
	uint64_t refs = 0, unrefs = 0;

	if (!object)
		return;
	for (size_t i = 0; i < object->nr_history; i++) {
		refs += object->history[i].refs;
		unrefs += object->history[i].unrefs;
	}
	fprintf(out, " count=%" PRIu64 " refs=%" PRIu64 " unrefs=%" PRIu64, object->count, refs,
		unrefs);
}

void resource_report_write_history(struct stack_lines *lines, const struct leak_report *report,
				   const struct heap_block *block)
{
	const struct ref_object *object = heap_tracker_refs(report->analysis->heaps, block);

	for (size_t i = 0; object && i < object->nr_history; i++) {
		const struct ref_history *history = &object->history[i];

		stack_lines_define(lines, history->stack_id, history->schema->function);
		fprintf(lines->out, "refs +%" PRIu64 " -%" PRIu64 " %s %" PRIu32 " %s\n",
			history->refs, history->unrefs, history->schema->function,
			history->stack_id, stack_lines_caller(lines, history->stack_id));
	}
}

static int compare_added(const void *a, const void *b)
{
	const struct ref_history *x = a, *y = b;
	int64_t left_x = (int64_t)(x->refs - x->unrefs), left_y = (int64_t)(y->refs - y->unrefs);

	if (left_x != left_y)
		return left_x > left_y ? -1 : 1;
	return (x->stack_id > y->stack_id) - (x->stack_id < y->stack_id);
}

/* Adds an object's history to the merged one. Returns 0 or -ENOMEM. */
static int merge(const struct ref_object *object, struct ref_history **merged, size_t *nr)
{
	for (size_t i = 0; i < object->nr_history; i++) {
		const struct ref_history *history = &object->history[i];
		struct ref_history *grown;
		size_t k = 0;

		while (k < *nr && ((*merged)[k].stack_id != history->stack_id ||
				   (*merged)[k].schema != history->schema))
			k++;
		if (k < *nr) {
			(*merged)[k].refs += history->refs;
			(*merged)[k].unrefs += history->unrefs;
			continue;
		}
		if (*nr == REF_MAX_STACKS)
			continue;
		grown = reallocarray(*merged, *nr + 1, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		*merged = grown;
		grown[(*nr)++] = *history;
	}
	return 0;
}

int resource_report_merge_histories(const struct leak_report *report, const struct leak_site *site,
				    struct ref_history **ret, size_t *ret_nr)
{
	const struct site_verdict *verdict = &report->verdicts.sites[site->site];
	int err = 0;

	*ret = NULL;
	*ret_nr = 0;
	for (size_t i = 0; i < verdict->held_blocks && !err; i++) {
		uint32_t index = report->verdicts.order[verdict->first + i];
		const struct ref_object *object =
			heap_tracker_refs(report->analysis->heaps, &report->held[index]);

		if (object && report->choices[index] == LEAK_LISTED)
			err = merge(object, ret, ret_nr);
	}
	if (*ret_nr)
		qsort(*ret, *ret_nr, sizeof(**ret), compare_added);
	return err;
}
