/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/calls/call_plan.h"

#include "probes/calls/call_finder.h"

#include "common/diag.h"
#include "common/proc/mapped_files.h"
#include "common/quantity.h"
#include "common/schema/probe_events.h"
#include "common/scope.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A call takes up to so much of CPU time (docs/narrowing.md). More of them slow a process down. */
#define CALL_US		   20
#define MAX_CALLS_A_SECOND 10000
#define LEAST_OBSERVED_S   1.0 /* a process at its start may make many at once */

/* The plan, and what it leaves out. */
struct plan {
	struct probe_set *set;
	struct mapped_files files;
	struct call_list *list;
	size_t *calls; /* list->frames that allocate, at most one for each stack */
	size_t nr_calls;
	/* Calls that were made, by enum call_kind, and those that have no probe. */
	uint64_t nr_made[2], nr_left_out[2];
	const struct placement_instruction *refused; /* the first instruction; or NULL */
};

/* --- which call of a stack --- */

static bool fits(const struct call_stack *stack, const struct probe_schema *schema)
{
	switch (schema->effect) {
	case HEAP_ALLOC:
		return stack->kind == CALL_ALLOCATES;
	case HEAP_REALLOC:
		return true;
	case HEAP_RELEASE:
		return stack->kind == CALL_RELEASES;
	default:
		/* posix_memalign() stores its block: that is not seen behind the call. */
		return false;
	}
}

/* The instruction that can have no probe, or NULL. */
static const struct placement_instruction *refused(const struct call_site *site)
{
	if (site->call.class > PLACEMENT_STEPPED)
		return &site->call;
	return probe_schema_has_return(site->schema) && site->landing.class > PLACEMENT_STEPPED
		       ? &site->landing
		       : NULL;
}

/* Finds the call to probe. Returns NULL if there is none. */
static const struct call_frame *choose(struct plan *plan, const struct call_stack *stack)
{
	for (size_t i = stack->nr; i-- > 0;) {
		const struct call_frame *frame = &plan->list->frames[stack->first + i];
		const struct placement_instruction *why;

		if (!frame->site.schema || !fits(stack, frame->site.schema))
			continue;
		why = refused(&frame->site);
		if (!why)
			return frame;
		if (!plan->refused)
			plan->refused = why;
	}
	return NULL;
}

/* True if @other allocates by one of the calls that are probed. */
static bool is_met(const struct plan *plan, const struct call_stack *other)
{
	for (size_t i = 0; i < other->nr; i++) {
		const struct call_frame *frame = &plan->list->frames[other->first + i];

		for (size_t k = 0; k < plan->nr_calls && *frame->build_id; k++) {
			const struct call_frame *call = &plan->list->frames[plan->calls[k]];

			if (frame->landing == call->landing &&
			    strcmp(frame->build_id, call->build_id) == 0)
				return true;
		}
	}
	return false;
}

/* --- the probes --- */

static struct probe *append_probe(struct probe_file *file, const struct call_frame *frame,
				  enum probe_point point)
{
	const struct call_site *site = &frame->site;
	struct probe *probe = probe_file_append(file);

	if (!probe)
		return NULL;
	probe->schema = site->schema;
	probe->first_arg = site->first_arg;
	probe->point = point;
	snprintf(probe->symbol, sizeof(probe->symbol), "%s", site->schema->function);
	probe_schema_event_name(site->schema->function, point, probe->event, sizeof(probe->event));
	probe->function_offset = frame->landing - site->target.size_bytes;
	probe->offset = point == PROBE_EXIT ? frame->landing : probe->function_offset;
	probe->instruction = point == PROBE_EXIT ? site->landing : site->call;
	probe->call = (struct probe_call){
		.size_bytes = site->target.size_bytes,
		.distance = site->target.distance,
		.pointer_distance = site->target.pointer_distance,
	};
	/* Programs know what to record by the row. */
	probe->fetch_args = strdup("");
	return probe->fetch_args ? probe : NULL;
}

static bool is_planned(const struct probe_file *file, const struct call_frame *frame)
{
	uint64_t call = frame->landing - frame->site.target.size_bytes;

	for (size_t i = 0; i < file->nr_probes; i++)
		if (file->probes[i].function_offset == call)
			return true;
	return false;
}

/* Finds or adds the file in @set. */
static int find_file(struct probe_set *set, const struct mapped_file *mapped,
		     struct probe_file **ret)
{
	const struct probe_source source = {.fd = mapped->fd,
					    .stat = &mapped->stat,
					    .path = mapped->path,
					    .display = mapped->display};
	struct probe_file file = {.fd = -1};
	struct group_name name;
	int err;

	for (size_t i = 0; i < set->nr_files; i++) {
		*ret = &set->files[i];
		if ((*ret)->stat.st_dev == mapped->stat.st_dev &&
		    (*ret)->stat.st_ino == mapped->stat.st_ino)
			return 0;
	}
	err = probe_file_set_source(&file, &source, "calls", &name);
	if (!err)
		err = probe_file_set_group(&file, &name);
	if (!err)
		err = probe_set_append(set, &file);
	probe_file_deinit(&file);
	*ret = err ? NULL : &set->files[set->nr_files - 1];
	return err;
}

static int plan_call(struct plan *plan, const struct call_frame *frame)
{
	struct probe_file *file;
	int err = find_file(plan->set, &plan->files.files[frame->site.file], &file);

	if (err || is_planned(file, frame))
		return err;
	if (!append_probe(file, frame, PROBE_ENTRY))
		return -ENOMEM;
	return probe_schema_has_return(frame->site.schema) && !append_probe(file, frame, PROBE_EXIT)
		       ? -ENOMEM
		       : 0;
}

/* Whether the stack's call is to be probed, as one of that kind. */
static bool is_of(const struct plan *plan, const struct call_stack *stack, enum call_kind kind)
{
	return stack->kind == kind &&
	       (stack->of == CALL_OF_CAUSE || is_met(plan, &plan->list->stacks[stack->of]));
}

/* Plans the calls of that kind. */
static int plan_kind(struct plan *plan, enum call_kind kind)
{
	struct call_list *list = plan->list;
	int err;

	for (size_t i = 0; i < list->nr_frames; i++)
		list->frames[i].is_wanted = false;
	for (size_t i = 0; i < list->nr; i++) {
		const struct call_stack *stack = &list->stacks[i];

		if (!is_of(plan, stack, kind))
			continue;
		for (size_t k = 0; k < stack->nr; k++)
			list->frames[stack->first + k].is_wanted = true;
	}
	err = call_finder_run(&plan->files, list);
	for (size_t i = 0; i < list->nr && !err; i++) {
		const struct call_stack *stack = &list->stacks[i];
		const struct call_frame *frame;

		if (!is_of(plan, stack, kind))
			continue;
		frame = choose(plan, stack);
		plan->nr_made[kind] += stack->nr_calls;
		if (!frame) {
			plan->nr_left_out[kind] += stack->nr_calls;
			continue;
		}
		if (kind == CALL_ALLOCATES)
			plan->calls[plan->nr_calls++] = (size_t)(frame - list->frames);
		err = plan_call(plan, frame);
		if (err)
			diag_error("cannot narrow: %s", strerror(-err));
	}
	return err;
}

static void tell_left_out(const struct plan *plan)
{
	if (plan->nr_left_out[CALL_ALLOCATES])
		diag_warn("%" PRIu64 " of %" PRIu64 " allocations of the cause came from calls "
			  "that cannot be probed; these are not recorded",
			  plan->nr_left_out[CALL_ALLOCATES], plan->nr_made[CALL_ALLOCATES]);
	if (plan->nr_left_out[CALL_RELEASES] || plan->list->is_cut)
		diag_warn("%s%" PRIu64 " of %" PRIu64 " releases came from calls that cannot be "
			  "probed: blocks that they release stay held in the recording",
			  plan->list->is_cut ? "at least " : "", plan->nr_left_out[CALL_RELEASES],
			  plan->nr_made[CALL_RELEASES]);
}

/* How often the probed calls were made. */
static uint64_t nr_recorded(const struct plan *plan)
{
	uint64_t nr = 0;

	for (int kind = CALL_ALLOCATES; kind <= CALL_RELEASES; kind++)
		nr += plan->nr_made[kind] - plan->nr_left_out[kind];
	for (size_t i = 0; i < plan->list->nr; i++)
		if (plan->list->stacks[i].kind == CALL_IS_OTHER &&
		    is_met(plan, &plan->list->stacks[i]))
			nr += plan->list->stacks[i].nr_calls;
	return nr;
}

/*
 * Says how often the calls are made, and refuses those that are made too often: the call in a
 * wrapper that all the program uses is as hot as malloc.
 */
static int check_calls(const struct plan *plan)
{
	const double observed_s = fmax(plan->list->observed_s, LEAST_OBSERVED_S);
	const double rate = (double)nr_recorded(plan) / observed_s;
	size_t nr_probes = 0, nr_allocating = 0;

	for (size_t i = 0; i < plan->set->nr_files; i++) {
		const struct probe_file *file = &plan->set->files[i];

		nr_probes += file->nr_probes;
		for (size_t k = 0; k < file->nr_probes; k++)
			nr_allocating += file->probes[k].point == PROBE_EXIT;
	}
	if (rate > MAX_CALLS_A_SECOND) {
		diag_error("cannot narrow: the calls of this cause are made %.0f times a second, "
			   "other causes' blocks included, and more than %d slow a process down; "
			   "record with --budget",
			   rate, MAX_CALLS_A_SECOND);
		return -E2BIG;
	}
	diag_note("narrowed to %zu call%s that allocate%s and %zu that release%s, made %.*f times "
		  "a second, which costs up to %.2g%% of a CPU",
		  nr_allocating, quantity_plural(nr_allocating),
		  quantity_word(nr_allocating, "s", ""), nr_probes - 2 * nr_allocating,
		  quantity_word(nr_probes - 2 * nr_allocating, "s", ""), rate < 10, rate,
		  rate * CALL_US / 1e4);
	return 0;
}

static int report_none(pid_t pid, const struct plan *plan)
{
	if (plan->refused)
		diag_error("cannot narrow: a probe is not possible, or not safe, on \"%s\" in "
			   "process %d; record without --narrow",
			   plan->refused->text, (int)pid);
	else
		diag_error("cannot narrow: process %d has none of the calls that the recording "
			   "has seen; record it anew, by the program that runs now",
			   (int)pid);
	return -ENODATA;
}

int call_plan_pid(struct probe_set *ret, pid_t pid, struct call_list *list)
{
	_cleanup_free_ size_t *calls = calloc(list->nr + 1, sizeof(*calls));
	struct plan plan = {.set = ret, .list = list, .calls = calls};
	int err;

	*ret = (struct probe_set){0};
	if (!calls) {
		diag_error("cannot narrow: out of memory");
		return -ENOMEM;
	}
	err = mapped_files_open(&plan.files, pid);
	if (err)
		return err;
	for (size_t i = 0; i < list->nr_frames; i++)
		list->frames[i].site = (struct call_site){0};
	err = plan_kind(&plan, CALL_ALLOCATES);
	if (!err && !plan.nr_calls)
		err = report_none(pid, &plan);
	if (!err)
		err = plan_kind(&plan, CALL_RELEASES);
	if (!err)
		err = check_calls(&plan);
	if (!err)
		tell_left_out(&plan);
	mapped_files_deinit(&plan.files);
	if (err)
		probe_set_deinit(ret);
	return err;
}

/* --- entries of functions --- */

static int plan_entry(struct probe_set *set, const struct mapped_file *mapped,
		      const struct call_function *function, struct call_entry *entry)
{
	struct probe_file *file;
	struct probe *probe;
	int err = find_file(set, mapped, &file);

	if (err)
		return err;
	if (file->is_on_fuse)
		return 0;
	probe = probe_file_append(file);
	if (!probe)
		return -ENOMEM;
	probe->function_offset = probe->offset = entry->offset = function->begin;
	probe->instruction = function->first;
	entry->file_fd = file->fd;
	entry->is_stepped = function->first.class == PLACEMENT_STEPPED;
	return 0;
}

int call_plan_entries(struct probe_set *ret, pid_t pid, struct call_entry *entries, size_t nr)
{
	_cleanup_free_ struct call_function *functions = calloc(nr + 1, sizeof(*functions));
	_cleanup_free_ struct mapped_place *places = calloc(nr + 1, sizeof(*places));
	struct mapped_files files = {0};
	int err = functions && places ? 0 : -ENOMEM;

	*ret = (struct probe_set){0};
	for (size_t i = 0; i < nr; i++) {
		entries[i].file_fd = -1;
		/* Behind a call at the end of a mapping comes another one. */
		if (!err)
			places[i].address = entries[i].address - (entries[i].address > 0);
	}
	if (!err)
		err = mapped_files_try_open_at(&files, pid, places, nr);
	for (size_t i = 0; i < nr && !err; i++)
		functions[i] = (struct call_function){.file = places[i].file,
						      .landing = places[i].offset + 1};
	if (!err)
		err = call_finder_find_functions(&files, functions, nr);
	for (size_t i = 0; i < nr && !err; i++)
		if (functions[i].begin && functions[i].first.class <= PLACEMENT_STEPPED)
			err = plan_entry(ret, &files.files[functions[i].file], &functions[i],
					 &entries[i]);
	mapped_files_deinit(&files);
	if (err)
		probe_set_deinit(ret);
	return err;
}
