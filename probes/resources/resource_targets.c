/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/resources/resource_targets.h"

#include "probes/elf/analysis_limit.h"
#include "probes/plan/exit_plan.h"
#include "probes/sites/probe_arch.h"
#include "probes/x86/code_flow.h"
#include "probes/x86/code_jumps.h"
#include "common/proc/mapped_files.h"

#include "common/diag.h"
#include "common/scope.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>

#define MAX_FUNCTIONS 256 /* in one file */

/* A function to probe. */
struct target {
	const struct pair_call *call;
	const struct pair_spec *spec;
	struct elf_function function;
	uint64_t place; /* of the entry's probe, in bytes from the function's beginning */
	struct placement_instruction instruction; /* there */
	struct function_exits exits;		  /* if has_return() */
};

/* The plan for one file. */
struct file_plan {
	const struct mapped_file *mapped;
	const struct elf_image *image;
	const struct debug_symbols_files *debug;
	struct exit_planner exits;
	struct target targets[MAX_FUNCTIONS];
	size_t nr;
};

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* True if the same code is planned already, by another of its names. */
static bool is_alias(const struct file_plan *plan, const struct target *target)
{
	for (size_t i = 0; i < plan->nr; i++)
		if (plan->targets[i].spec == target->spec &&
		    plan->targets[i].call->role == target->call->role &&
		    plan->targets[i].function.offset == target->function.offset)
			return true;
	return false;
}

/* The number of arguments that must still be as they were at the entry. */
static int nr_args_of(const struct pair_call *call)
{
	return call->handle_arg > call->size_arg ? call->handle_arg : call->size_arg;
}

/* Reads the function's code and finds its cheapest place for probes. */
static int place_target(const struct file_plan *plan, struct target *target)
{
	size_t size_bytes = target->function.size_bytes;
	_cleanup_free_ uint8_t *code = NULL;
	int err;

	if (size_bytes == 0 || size_bytes > CODE_FLOW_MAX_BYTES)
		return 0;
	code = malloc(size_bytes);
	if (!code)
		return -ENOMEM;
	err = elf_image_read(plan->image, target->function.offset, code, size_bytes);
	/*
	 * What an argument points to may be cleared later in the function, so the entry is probed.
	 */
	return err || target->call->is_pointed_to
		       ? err
		       : probe_arch_place_entry(probe_arch_native(), code, size_bytes,
						nr_args_of(target->call), &target->place);
}

/* True if the return is probed, too: the call may fail, or its handle is known only then. */
static bool has_return(const struct pair_call *call)
{
	return call->place != RESOURCE_IN_ARGUMENT || call->failure != RESOURCE_FAILS_BY_NULL;
}

/*
 * Moves the probe to the entry in each function that has jumps from elsewhere to between its entry
 * and its place.
 */
static int reject_entered(struct file_plan *plan)
{
	struct code_span spans[MAX_FUNCTIONS];
	size_t placed[MAX_FUNCTIONS], nr_placed = 0;
	int err;

	for (size_t i = 0; i < plan->nr; i++) {
		const struct target *target = &plan->targets[i];

		if (target->place == 0)
			continue;
		spans[nr_placed] = (struct code_span){
			.first = target->function.offset + 1,
			.last = target->function.offset + target->place,
		};
		placed[nr_placed++] = i;
	}
	err = nr_placed ? code_jumps_find(plan->image, spans, nr_placed) : 0;
	for (size_t i = 0; i < nr_placed; i++)
		if (spans[i].is_entered)
			plan->targets[placed[i]].place = 0;
	return err;
}

/* Leaves out the functions whose entry or place is refused. */
static void drop_refused(struct file_plan *plan)
{
	size_t nr = 0;

	for (size_t i = 0; i < plan->nr; i++) {
		struct target *target = &plan->targets[i];

		probe_arch_describe_at(plan->image, target->function.offset + target->place,
				       &target->instruction);
		if (target->instruction.class == PLACEMENT_REFUSED)
			diag_warn(
				"cannot record %s of %s: a probe is not possible, or not safe, on "
				"\"%s\"; its calls are missing",
				target->call->name, plan->mapped->display,
				target->instruction.text);
		else
			plan->targets[nr++] = *target;
	}
	plan->nr = nr;
}

/* Finds the functions in the file, and marks those that it has in @found. */
static int find_targets(struct file_plan *plan, const struct resource_specs *specs,
			struct found_functions *found)
{
	int err = 0;

	for (size_t i = 0; i < specs->nr; i++) {
		const struct pair_spec *spec = &specs->pairs[i];

		for (size_t j = 0; j < spec->nr && !err; j++) {
			struct target target = {.call = &spec->calls[j], .spec = spec};

			if (!resource_function_find(plan->mapped, plan->image, plan->debug,
						    target.call, &target.function))
				continue;
			found[i].is_found[j] = true;
			if (is_alias(plan, &target))
				continue;
			if (plan->nr == MAX_FUNCTIONS)
				return -E2BIG;
			if (has_return(target.call))
				err = exit_planner_find(&plan->exits, &target.function,
							target.call->name, &target.exits);
			if (err == -ENOTSUP) {
				err = 0;
				continue;
			}
			if (!err)
				err = place_target(plan, &target);
			plan->targets[plan->nr++] = target;
		}
	}
	if (!err)
		err = reject_entered(plan);
	if (!err)
		drop_refused(plan);
	return err;
}

static int asprintf_or_null(char **ret, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static int asprintf_or_null(char **ret, const char *format, ...)
{
	va_list args;
	int len;

	va_start(args, format);
	len = vasprintf(ret, format, args);
	va_end(args);
	if (len < 0)
		*ret = NULL;
	return len < 0 ? -ENOMEM : 0;
}

/* Makes "handle=%di:x64 size=%si:u64 caller=+0(%sp):x64", of which the first two are optional. */
static int entry_args(const struct pair_call *call, char **ret)
{
	const struct probe_arch *arch = probe_arch_native();
	char handle[64] = "", size[32] = "";

	if (call->handle_arg)
		snprintf(handle, sizeof(handle),
			 call->place == RESOURCE_STORED ? RESOURCE_FIELD_AT "=%s:x64 "
			 : call->is_pointed_to		? RESOURCE_FIELD_HANDLE "=+0(%s):x64 "
							: RESOURCE_FIELD_HANDLE "=%s:x64 ",
			 arch->arguments[call->handle_arg - 1]);
	if (call->size_arg)
		snprintf(size, sizeof(size), RESOURCE_FIELD_SIZE "=%s:u64 ",
			 arch->arguments[call->size_arg - 1]);
	return asprintf_or_null(ret, "%s%s" PROBE_FIELD_CALLER "=%s:x64", handle, size,
				arch->caller);
}

/* Plans the probes at the exits, as @model. */
static int plan_exits(struct probe_file *file, const struct file_plan *plan,
		      const struct target *target, const struct resource_call *row,
		      struct resource_event *event, struct probe *model)
{
	char field[RESOURCE_FIELD_MAX + 1];
	int err = 0;

	resource_return_field(row, field);
	for (size_t i = 0; i < target->exits.nr && !err; i++) {
		event->exit_number = (unsigned int)i;
		resource_event_format(event, model->event);
		err = exit_plan_append(file, &plan->exits, target->exits.offsets[i], model,
				       target->function.offset + target->place, field,
				       row->failure == RESOURCE_FAILS_BY_NULL ? "x64" : "s64");
	}
	return err;
}

void resource_targets_name(const struct pair_spec *spec, const struct pair_call *call,
			   struct resource_event *ret)
{
	memcpy(ret->kind, spec->kind, sizeof(ret->kind));
	ret->role = call->role;
	snprintf(ret->function, sizeof(ret->function), "%s", base_name(call->name));
	if (call->naming != PAIR_BY_SYMBOL)
		snprintf(ret->function, sizeof(ret->function), "%.40s_%" PRIu64,
			 base_name(call->name), call->number);
}

int resource_targets_row(struct resource_schemas *schemas, const struct pair_call *call,
			 const struct resource_event *event, struct resource_call **ret)
{
	int err = resource_schemas_add(schemas, event, ret);

	if (err)
		return err;
	(*ret)->place = call->place;
	(*ret)->failure = call->failure;
	(*ret)->failure_value = call->failure_value;
	return 0;
}

static int plan_event(struct probe_file *file, const struct file_plan *plan,
		      const struct target *target, struct resource_schemas *schemas,
		      enum resource_stage stage)
{
	const struct pair_call *call = target->call;
	struct resource_event event = {.stage = stage};
	struct probe planned = {.function_offset = target->function.offset, .tracefs_id = -1};
	struct resource_call *row;
	struct probe *probe;
	int err;

	resource_targets_name(target->spec, call, &event);
	err = resource_targets_row(schemas, call, &event, &row);
	if (err)
		return err;
	snprintf(planned.symbol, sizeof(planned.symbol), "%.*s", (int)sizeof(planned.symbol) - 1,
		 event.function);
	planned.schema = &row->schema;
	planned.point = PROBE_ENTRY;
	if (stage == RESOURCE_EXIT)
		return plan_exits(file, plan, target, row, &event, &planned);
	resource_event_format(&event, planned.event);
	probe = probe_file_append(file);
	if (!probe)
		return -ENOMEM;
	planned.instruction = target->instruction;
	*probe = planned;
	probe->offset = target->function.offset + target->place;
	return entry_args(call, &probe->fetch_args);
}

static int plan_target(struct probe_file *file, const struct file_plan *plan,
		       const struct target *target, struct resource_schemas *schemas)
{
	int err;

	if (!has_return(target->call))
		return plan_event(file, plan, target, schemas, RESOURCE_WHOLE);
	err = plan_event(file, plan, target, schemas, RESOURCE_ENTRY);
	return err ? err : plan_event(file, plan, target, schemas, RESOURCE_EXIT);
}

static int plan_targets(struct probe_set *set, const struct file_plan *plan,
			struct resource_schemas *schemas)
{
	struct probe_file file = {.fd = -1, .has_resources = true};
	struct group_name name;
	const struct probe_source source = {.fd = plan->mapped->fd,
					    .image = plan->image,
					    .stat = &plan->mapped->stat,
					    .path = plan->mapped->path,
					    .display = plan->mapped->display};
	int err = probe_file_set_source(&file, &source, "resources", &name);

	for (size_t i = 0; i < plan->nr && !err; i++)
		err = plan_target(&file, plan, &plan->targets[i], schemas);
	if (!err)
		err = probe_file_set_group(&file, &name);
	if (!err)
		err = probe_set_append(set, &file);
	probe_file_deinit(&file);
	return err;
}

int resource_targets_plan(struct probe_set *set, const struct mapped_file *mapped,
			  const struct elf_image *image, const struct debug_symbols_files *debug,
			  struct resource_specs *specs, struct found_functions *found)
{
	struct file_plan *plan = calloc(1, sizeof(*plan));
	int err;

	if (!plan)
		return -ENOMEM;
	plan->mapped = mapped;
	plan->image = image;
	plan->debug = debug;
	exit_planner_init(&plan->exits, image, mapped->display);
	err = find_targets(plan, specs, found);
	/* The result may be incomplete, or in the wrong place. */
	if (!err && plan->nr && analysis_limit_is_reached(0))
		err = -ETIME;
	if (!err && plan->nr)
		err = plan_targets(set, plan, &specs->schemas);
	exit_planner_deinit(&plan->exits);
	free(plan);
	return err;
}
