/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/resources/resource_plan.h"

#include "probes/elf/analysis_limit.h"
#include "probes/x86/code_flow.h"
#include "probes/x86/code_jumps.h"
#include "probes/elf/elf_image.h"
#include "probes/plan/exit_plan.h"
#include "probes/elf/function_lines.h"
#include "probes/elf/named_functions.h"
#include "probes/sites/probe_arch.h"
#include "probes/plan/probe_set.h"
#include "common/proc/process_maps.h"

#include "common/diag.h"
#include "common/scope.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>

#define MAX_FUNCTIONS 256 /* in one file */

int resource_wishes_add(struct resource_wishes *wishes, const char *option, const char *text)
{
	struct pair_spec *grown = reallocarray(wishes->specs, wishes->nr + 1, sizeof(*grown));
	char why[PAIR_WHY_MAX] = "";
	int err = -ENOMEM;

	if (grown) {
		wishes->specs = grown;
		err = pair_spec_parse(text, strcmp(option, "--ref") == 0, &grown[wishes->nr++],
				      why);
	}
	if (err)
		diag_error("%s \"%s\": %s", option, text, *why ? why : strerror(-err));
	return err;
}

void resource_wishes_deinit(struct resource_wishes *wishes)
{
	for (size_t i = 0; i < wishes->nr; i++)
		pair_spec_deinit(&wishes->specs[i]);
	free(wishes->specs);
	resource_schemas_deinit(&wishes->schemas);
	*wishes = (struct resource_wishes){0};
}

/* A function to be probed. */
struct target {
	const struct pair_call *call;
	const struct pair_spec *spec;
	struct elf_function function;
	uint8_t *code;
	uint64_t place;		     /* of the probe of its entry, in bytes from its beginning */
	struct function_exits exits; /* of one that has a return */
};

/* What is planned for one file. */
struct file_plan {
	const struct mapped_file *mapped;
	const struct elf_image *image;
	struct exit_planner exits;
	struct target targets[MAX_FUNCTIONS];
	size_t nr;
};

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* "libx.so" and "lib/libx.so" mean /usr/lib/libx.so; libpool.so means libpool.so.3.1, too. */
static bool names_file(const char *name, const char *path)
{
	size_t len = strlen(name), path_len = strlen(path);
	const char *base = base_name(path);

	if (len <= path_len && strcmp(path + path_len - len, name) == 0 &&
	    (len == path_len || path[path_len - len - 1] == '/' || *name == '/'))
		return true;
	return !strchr(name, '/') && strncmp(base, name, len) == 0 &&
	       strncmp(base + len, ".", 1) == 0;
}

static bool find_function(const struct file_plan *plan, const struct pair_call *call,
			  struct elf_function *ret)
{
	switch (call->naming) {
	case PAIR_BY_SYMBOL:
		return named_function_find(plan->image, call->name, ret);
	case PAIR_BY_OFFSET:
		return names_file(call->name, plan->mapped->display) &&
		       named_function_at(plan->image, call->number, ret);
	case PAIR_BY_LINE:
		return function_lines_find(plan->image, plan->mapped->path, call->name,
					   (int)call->number, ret);
	}
	return false;
}

/* True if the same is planned of the same code by another of its names. */
static bool is_alias(const struct file_plan *plan, const struct target *target)
{
	for (size_t i = 0; i < plan->nr; i++)
		if (plan->targets[i].spec == target->spec &&
		    plan->targets[i].call->role == target->call->role &&
		    plan->targets[i].function.offset == target->function.offset)
			return true;
	return false;
}

/* The arguments that the probe reads must be as they were at the entry. */
static int nr_args_of(const struct pair_call *call)
{
	return call->handle_arg > call->size_arg ? call->handle_arg : call->size_arg;
}

/* Reads the function's code and finds where in it the probes are cheapest. */
static int place_target(const struct file_plan *plan, struct target *target)
{
	size_t size_bytes = target->function.size_bytes;
	int err;

	if (size_bytes == 0 || size_bytes > CODE_FLOW_MAX_BYTES)
		return 0;
	target->code = malloc(size_bytes);
	if (!target->code)
		return -ENOMEM;
	err = elf_image_read(plan->image, target->function.offset, target->code, size_bytes);
	/* What an argument points to may be cleared by then: the entry is too early for that. */
	return err || target->call->is_pointed_to
		       ? err
		       : probe_arch_place_entry(probe_arch_native(), target->code, size_bytes,
						nr_args_of(target->call), &target->place);
}

/* What may fail, or is known only then, is seen at its return, too. */
static bool has_return(const struct pair_call *call)
{
	return call->place != RESOURCE_IN_ARGUMENT || call->failure != RESOURCE_FAILS_BY_NULL;
}

/* What something jumps into, between its entry and its place, is probed at the entry. */
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

/* Finds the functions in the file; *@found[i] is set of those calls that it has. */
static int find_targets(struct file_plan *plan, const struct resource_wishes *wishes, bool **found)
{
	int err = 0;

	for (size_t i = 0; i < wishes->nr; i++) {
		const struct pair_spec *spec = &wishes->specs[i];

		for (size_t j = 0; j < spec->nr && !err; j++) {
			struct target target = {.call = &spec->calls[j], .spec = spec};

			if (!find_function(plan, target.call, &target.function))
				continue;
			found[i][j] = true;
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
	return err ? err : reject_entered(plan);
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

/* "handle=%di:x64 size=%si:u64 caller=+0(%sp):x64", each where there is one. */
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

/* The probes where its calls end, as @model. */
static int plan_exits(struct probe_file *file, const struct file_plan *plan,
		      const struct target *target, const struct resource_call *row,
		      const struct probe *model)
{
	char field[RESOURCE_FIELD_MAX + 1];

	resource_return_field(row, field);
	return exit_plan_append(file, &plan->exits, &target->exits, model,
				target->function.offset + target->place, field,
				row->failure == RESOURCE_FAILS_BY_NULL ? "x64" : "s64");
}

static int plan_event(struct probe_file *file, const struct file_plan *plan,
		      const struct target *target, struct resource_schemas *schemas,
		      enum resource_stage stage)
{
	const struct pair_call *call = target->call;
	struct resource_event event = {.role = call->role, .stage = stage};
	struct probe planned = {.function_offset = target->function.offset, .tracefs_id = -1};
	struct resource_call *row;
	struct probe *probe;
	int err;

	memcpy(event.kind, target->spec->kind, sizeof(event.kind));
	snprintf(event.function, sizeof(event.function), "%s", base_name(call->name));
	if (call->naming != PAIR_BY_SYMBOL)
		snprintf(event.function, sizeof(event.function), "%.40s_%" PRIu64,
			 base_name(call->name), call->number);
	err = resource_schemas_add(schemas, &event, &row);
	if (err)
		return err;
	row->place = call->place;
	row->failure = call->failure;
	row->failure_value = call->failure_value;
	snprintf(planned.symbol, sizeof(planned.symbol), "%.*s", (int)sizeof(planned.symbol) - 1,
		 event.function);
	planned.schema = &row->schema;
	planned.point = PROBE_ENTRY;
	resource_event_format(&event, planned.event);
	if (stage == RESOURCE_EXIT)
		return plan_exits(file, plan, target, row, &planned);
	probe = probe_file_append(file);
	if (!probe)
		return -ENOMEM;
	planned.instruction = probe->instruction;
	*probe = planned;
	probe->offset = target->function.offset + target->place;
	if (target->code)
		probe_arch_describe(probe_arch_native(), target->code + target->place,
				    target->function.size_bytes - target->place,
				    &probe->instruction);
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
	const struct probe_source source = {.image = plan->image,
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

static int plan_file(struct probe_set *set, const struct mapped_file *mapped,
		     struct resource_wishes *wishes, bool **found)
{
	struct elf_image image;
	struct file_plan *plan;
	int err;

	analysis_limit_begin(ANALYSIS_LIMIT_NS);
	err = elf_image_init(&image, mapped->fd);
	if (err)
		return 0;
	plan = calloc(1, sizeof(*plan));
	if (!plan)
		err = -ENOMEM;
	if (plan && image.is_native) {
		plan->mapped = mapped;
		plan->image = &image;
		exit_planner_init(&plan->exits, &image, mapped->display);
		err = find_targets(plan, wishes, found);
		/* What was found up to there may be a part of it, or in the wrong place. */
		if (!err && plan->nr && analysis_limit_is_reached(0))
			err = -ETIME;
		if (!err && plan->nr)
			err = plan_targets(set, plan, &wishes->schemas);
	}
	for (size_t i = 0; plan && i < plan->nr; i++)
		free(plan->targets[i].code);
	if (plan)
		exit_planner_deinit(&plan->exits);
	free(plan);
	elf_image_deinit(&image);
	analysis_limit_end();
	if (err)
		diag_error("cannot plan probes for %s: %s", mapped->display, strerror(-err));
	return err;
}

/* Says which function is nowhere. */
static int check_found(pid_t pid, const struct resource_wishes *wishes, bool *const *found)
{
	for (size_t i = 0; i < wishes->nr; i++) {
		for (size_t j = 0; j < wishes->specs[i].nr; j++) {
			const struct pair_call *call = &wishes->specs[i].calls[j];

			if (found[i][j])
				continue;
			if (call->naming == PAIR_BY_SYMBOL)
				diag_error("process %d has mapped no file that defines %s; if its "
					   "symbols were stripped, name it as FILE+OFFSET",
					   (int)pid, call->name);
			else if (call->naming == PAIR_BY_OFFSET)
				diag_error("process %d has mapped no code at %s+0x%" PRIx64,
					   (int)pid, call->name, call->number);
			else
				diag_error("process %d: the debugging information of its files "
					   "has no function at %s:%" PRIu64,
					   (int)pid, call->name, call->number);
			return -ENOENT;
		}
	}
	return 0;
}

static void free_found(bool **found, size_t nr)
{
	for (size_t i = 0; found && i < nr; i++)
		free(found[i]);
	free(found);
}

static bool **alloc_found(size_t nr)
{
	bool **found = calloc(nr, sizeof(*found));

	for (size_t i = 0; found && i < nr; i++) {
		found[i] = calloc(PAIR_MAX_CALLS, sizeof(**found));
		if (!found[i]) {
			free_found(found, i);
			return NULL;
		}
	}
	return found;
}

int resource_plan_pid(struct probe_set *set, pid_t pid, struct resource_wishes *wishes)
{
	struct mapped_files files;
	bool **found;
	int err;

	if (!wishes->nr)
		return 0;
	found = alloc_found(wishes->nr);
	if (!found) {
		diag_error("cannot plan probes: out of memory");
		return -ENOMEM;
	}
	err = mapped_files_open(&files, pid);
	if (!err) {
		for (size_t i = 0; i < files.nr && !err; i++)
			err = plan_file(set, &files.files[i], wishes, found);
		if (!err)
			err = check_found(pid, wishes, found);
		mapped_files_deinit(&files);
	}
	free_found(found, wishes->nr);
	return err;
}

/* What the event's definition says of the call. */
static void learn_call(struct resource_call *call, const struct uprobe *there,
		       enum resource_stage stage)
{
	char field[RESOURCE_FIELD_MAX + 1];

	if (stage == RESOURCE_EXIT) {
		snprintf(field, sizeof(field), "%.*s", (int)strcspn(there->fetch_args, "="),
			 there->fetch_args);
		resource_return_field_parse(field, call);
	} else if (strncmp(there->fetch_args, RESOURCE_FIELD_AT "=",
			   strlen(RESOURCE_FIELD_AT "=")) == 0) {
		call->place = RESOURCE_STORED;
	}
}

/* Sets *@found[i] of the calls that the file has. */
static void look_into(const struct mapped_file *mapped, const struct resource_wishes *wishes,
		      bool **found)
{
	struct elf_function function;
	struct elf_image image;
	const struct file_plan plan = {.mapped = mapped, .image = &image};

	if (elf_image_init(&image, mapped->fd))
		return;
	for (size_t i = 0; i < wishes->nr && image.is_native; i++)
		for (size_t j = 0; j < wishes->specs[i].nr; j++)
			if (!found[i][j])
				found[i][j] =
					find_function(&plan, &wishes->specs[i].calls[j], &function);
	elf_image_deinit(&image);
}

bool resource_wishes_are_mapped(const struct resource_wishes *wishes, pid_t pid)
{
	bool **found = wishes->nr ? alloc_found(wishes->nr) : NULL, all = true;
	struct mapped_files files;

	if (!found || mapped_files_open(&files, pid)) {
		free_found(found, wishes->nr);
		return true;
	}
	for (size_t i = 0; i < files.nr; i++)
		look_into(&files.files[i], wishes, found);
	for (size_t i = 0; i < wishes->nr; i++)
		for (size_t j = 0; j < wishes->specs[i].nr; j++)
			all &= found[i][j];
	mapped_files_deinit(&files);
	free_found(found, wishes->nr);
	return all;
}

/* The probe that @there is, among those of @file. */
static int take_registered(struct probe_file *file, const struct uprobe *there,
			   struct resource_schemas *schemas)
{
	struct resource_event event;
	struct resource_call *row;
	struct probe *probe;
	int err;

	err = resource_event_parse(there->event, &event);
	/* Another version's: no exception could pass it. */
	if (!err && there->is_return)
		return 0;
	if (!err)
		err = resource_schemas_add(schemas, &event, &row);
	if (err)
		return err;
	probe = probe_file_append(file);
	if (!probe)
		return -ENOMEM;
	snprintf(probe->symbol, sizeof(probe->symbol), "%s", row->function);
	probe->schema = &row->schema;
	probe->point = event.stage == RESOURCE_EXIT ? PROBE_EXIT : PROBE_ENTRY;
	probe->offset = there->offset;
	probe->function_offset = there->offset - exit_plan_from_entry(there->fetch_args);
	learn_call(row, there, event.stage);
	snprintf(probe->event, sizeof(probe->event), "%s", there->event);
	probe->fetch_args = strdup(there->fetch_args);
	return probe->fetch_args ? 0 : -ENOMEM;
}

/* Whether a probe of leakprobe's, of a resource, may be on the file with that hash. */
static bool is_on_file(const struct uprobe *probe, uint32_t inode_hash, struct group_name *ret)
{
	struct resource_event event;

	return group_name_parse(probe->group, ret) == 0 && ret->owner == GROUP_OF_LEAKPROBE &&
	       ret->inode_hash == inode_hash && resource_event_parse(probe->event, &event) == 0;
}

/* True of a pool's: those are planned wherever a program has some. */
static bool is_planned(const struct probe_set *set, const struct uprobe *probe)
{
	for (size_t i = 0; i < set->nr_files; i++) {
		const struct probe_file *file = &set->files[i];

		for (size_t j = 0; j < file->nr_probes && strcmp(file->group, probe->group) == 0;
		     j++)
			if (strcmp(file->probes[j].event, probe->event) == 0)
				return true;
	}
	return false;
}

static int take_file(struct probe_set *set, const struct mapped_file *mapped,
		     const struct uprobe_list *list, struct resource_schemas *schemas)
{
	uint32_t inode_hash = group_name_inode_hash(mapped->stat.st_dev, mapped->stat.st_ino);
	struct probe_file file = {.fd = -1, .has_resources = true};
	struct group_name name = {0}, group;
	int err = 0;

	for (size_t i = 0; i < list->nr && !err; i++) {
		if (!is_on_file(&list->probes[i], inode_hash, &group) ||
		    is_planned(set, &list->probes[i]))
			continue;
		if (!file.path) {
			struct elf_image image;

			const struct probe_source source = {.image = &image,
							    .stat = &mapped->stat,
							    .path = mapped->path,
							    .display = mapped->display};

			if (elf_image_init(&image, mapped->fd))
				break;
			err = probe_file_set_source(&file, &source, "resources", &name);
			elf_image_deinit(&image);
		}
		/* Those of another build that had that inode watch nothing. */
		if (!err && group.build_hash == name.build_hash)
			err = take_registered(&file, &list->probes[i], schemas);
	}
	if (!err && file.nr_probes)
		err = probe_file_set_group(&file, &name);
	if (!err && file.nr_probes)
		err = probe_set_append(set, &file);
	probe_file_deinit(&file);
	return err;
}

int resource_plan_registered(struct probe_set *set, pid_t pid, struct resource_schemas *schemas)
{
	struct mapped_files files;
	struct uprobe_list list;
	int err = tracefs_uprobes_read(&list, false);

	if (err)
		return err;
	err = list.nr ? mapped_files_open(&files, pid) : 0;
	if (!err && list.nr) {
		for (size_t i = 0; i < files.nr && !err; i++)
			err = take_file(set, &files.files[i], &list, schemas);
		mapped_files_deinit(&files);
		if (err)
			diag_error("cannot take the probes of resources: %s", strerror(-err));
	}
	uprobe_list_deinit(&list);
	return err;
}
