/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/text/cause_parts.h"

#include "common/diag.h"

#include <errno.h>
#include <stdlib.h>

#define MAX_PARTS  3 /* that are shown */
#define PART_NAMES 4 /* of which are shown, the innermost ones */

/* The functions of @site from the callee inwards, as far as that which asked for the memory. */
static struct cause_part part_of(const struct cause_frames *site)
{
	bool is_callee = site->inner != SIZE_MAX;
	size_t at = is_callee ? site->inner : site->first;
	const struct named_frame *frames = site->stack.frames;
	struct cause_part part = {.file = is_callee ? NULL : frames[at].file};

	part.line = part.file ? frames[at].line : 0;
	do
		part.names[part.nr++] = frames[at].name;
	while (at-- > site->user && part.nr < CAUSE_PART_DEPTH);
	return part;
}

/* Names of one pool are equal pointers. Any order will do. */
static int compare_numbers(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int compare_callees(const void *a, const void *b)
{
	const struct cause_part *x = a, *y = b;
	int order = compare_numbers((uintptr_t)x->names[0], (uintptr_t)y->names[0]);

	return order ? order : compare_numbers((uint64_t)x->line, (uint64_t)y->line);
}

static size_t nr_shown(const struct cause_part *part)
{
	return part->nr < PART_NAMES ? part->nr : PART_NAMES;
}

/* Compares what is shown of parts. */
static int compare_looks(const void *a, const void *b)
{
	const struct cause_part *x = a, *y = b;
	int order = compare_numbers((uint64_t)x->line, (uint64_t)y->line);

	if (!order)
		order = compare_numbers(nr_shown(x), nr_shown(y));
	if (!order)
		order = (x->nr > PART_NAMES) - (y->nr > PART_NAMES);
	for (size_t i = 1; !order && i <= nr_shown(x); i++)
		order = compare_numbers((uintptr_t)x->names[x->nr - i],
					(uintptr_t)y->names[y->nr - i]);
	return order;
}

static int compare_bytes(const void *a, const void *b)
{
	const struct cause_part *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	return compare_numbers(x->rank, y->rank);
}

static void add_bytes(struct cause_part *to, const struct cause_part *part)
{
	to->bytes += part->bytes;
	to->rank = part->rank < to->rank ? part->rank : to->rank;
}

/* Adds @part to @to, which goes on with the functions that both share. */
static void join(struct cause_part *to, const struct cause_part *part)
{
	size_t shared = 1;

	while (shared < to->nr && shared < part->nr && to->names[shared] == part->names[shared])
		shared++;
	to->nr = shared;
	add_bytes(to, part);
}

/* Sorts parts, and merges equal ones by @merge. */
static void merge_equal(struct cause_parts *parts, int (*compare)(const void *, const void *),
			void (*merge)(struct cause_part *to, const struct cause_part *part))
{
	size_t nr = 0;

	qsort(parts->list, parts->nr, sizeof(*parts->list), compare);
	for (size_t i = 0; i < parts->nr; i++) {
		if (nr && !compare(&parts->list[nr - 1], &parts->list[i]))
			merge(&parts->list[nr - 1], &parts->list[i]);
		else
			parts->list[nr++] = parts->list[i];
	}
	parts->nr = nr;
}

int cause_parts_find(struct cause_parts *parts, const struct leak_report *report,
		     const struct leak_cause *cause, const struct named_stack *like)
{
	struct cause_frames site = {.stack = {.names = like->names, .wrappers = like->wrappers}};
	int err = 0;

	*parts = (struct cause_parts){.list = calloc(cause->nr + 1, sizeof(*parts->list))};
	if (!parts->list)
		return -ENOMEM;
	for (size_t i = 0; i < cause->nr && !err; i++) {
		const struct leak_site *of = &report->sites_by_cause[cause->first + i];

		err = cause_frames_load(&site, report, cause, of);
		if (err || !site.stack.nr)
			continue;
		parts->list[parts->nr] = part_of(&site);
		parts->list[parts->nr].bytes = of->bytes;
		parts->list[parts->nr++].rank = i;
		parts->bytes += of->bytes;
	}
	named_stack_deinit(&site.stack);
	merge_equal(parts, compare_callees, join);
	/* Different ways to the same function are one part. */
	merge_equal(parts, compare_looks, add_bytes);
	qsort(parts->list, parts->nr, sizeof(*parts->list), compare_bytes);
	return err;
}

void cause_parts_deinit(struct cause_parts *parts)
{
	free(parts->list);
	*parts = (struct cause_parts){0};
}

const char *cause_parts_only_function(const struct cause_parts *parts)
{
	const char *name = NULL;

	for (size_t i = 0; i < parts->nr; i++) {
		const char *innermost = parts->list[i].names[parts->list[i].nr - 1];

		if (name && name != innermost)
			return NULL;
		name = innermost;
	}
	return name;
}

/* "server.c:19"; "load_font"; of a part that is all below one function of it "read_glyphs <
 * load_font" */
static void write_part(FILE *out, const struct cause_part *part)
{
	if (part->line) {
		diag_print_escaped(out, named_stack_basename(part->file), NULL);
		fprintf(out, ":%d", part->line);
		return;
	}
	for (size_t i = 0; i < nr_shown(part); i++) {
		fputs(i ? " < " : "", out);
		diag_print_escaped(out, part->names[part->nr - 1 - i], NULL);
	}
	if (part->nr > PART_NAMES)
		fputs(" ...", out);
}

void cause_parts_write(FILE *out, const struct cause_parts *parts)
{
	uint64_t bytes = parts->bytes ? parts->bytes : 1;

	for (size_t i = 0; i < parts->nr && i < MAX_PARTS; i++) {
		double percent = 100 * (double)parts->list[i].bytes / (double)bytes;

		fputs(i ? ", " : "", out);
		write_part(out, &parts->list[i]);
		fprintf(out, percent < 0.5 ? " under 1 %%" : " %.0f %%", percent);
	}
	if (parts->nr > MAX_PARTS)
		fprintf(out, ", %zu more", parts->nr - MAX_PARTS);
}
