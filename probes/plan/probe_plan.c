/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/plan/probe_plan.h"

#include "probes/x86/code_jumps.h"
#include "probes/plan/exit_plan.h"
#include "probes/plan/usdt_pool_probes.h"
#include "probes/sites/probe_arch.h"
#include "probes/plan/usdt_plan.h"

#include "common/diag.h"
#include "common/schema/probe_events.h"
#include "common/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>

#define MAX_STORES 8

static int append_format(char **text, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static int append_format(char **text, const char *format, ...)
{
	_cleanup_free_ char *old = *text, *added = NULL;
	va_list args;
	int len;

	*text = NULL;
	va_start(args, format);
	len = vasprintf(&added, format, args);
	va_end(args);
	if (len < 0) {
		added = NULL;
		return -ENOMEM;
	}
	if (asprintf(text, "%s%s%s", old ? old : "", old ? " " : "", added) < 0) {
		*text = NULL;
		return -ENOMEM;
	}
	return 0;
}

/* Addresses are recorded as x64, sizes and counts as u64: `perf script` shows them so. */
static int entry_args(const struct probe_schema *schema, int first_arg, char **ret)
{
	for (int i = 0; i < schema->nr_args; i++) {
		const char *type = i == schema->block_arg ? "x64" : "u64";

		if (append_format(ret, "%s=%s:%s", schema->arg_names[i],
				  probe_arch_native()->arguments[first_arg + i], type))
			return -ENOMEM;
	}
	return append_format(ret, PROBE_FIELD_CALLER "=%s:x64", probe_arch_native()->caller);
}

static int return_args(const struct probe_schema *schema, char **ret)
{
	/* posix_memalign returns an int; the upper half of the register is undefined. */
	return append_format(ret, PROBE_FIELD_RET "=$retval:%s",
			     schema->effect == HEAP_ALLOC_TO_PTR ? "s32" : "x64");
}

/* A function of the file while its probes are planned. */
struct planned_function {
	const struct allocator_function *function;
	uint64_t offset; /* in the file */
	uint8_t *code;
	size_t size_bytes; /* of @code; 0: not known */
	uint64_t place;	   /* of the entry and return probes, in bytes from @offset */
	bool has_exits;	   /* its returns are probed at its exits, without a return probe */
	struct function_exits exits;
};

/* Reads the code and finds the place of the probes. Returns 0 or a negative errno. */
static int planned_function_init(struct planned_function *ret, const struct elf_image *image,
				 const struct allocator_function *function)
{
	size_t size_bytes = function->code.size_bytes;
	int err;

	*ret = (struct planned_function){.function = function, .offset = function->code.offset};
	if (size_bytes == 0 || size_bytes > CODE_FLOW_MAX_BYTES)
		return 0;
	ret->code = malloc(size_bytes);
	if (!ret->code)
		return -ENOMEM;
	ret->size_bytes = size_bytes;
	err = elf_image_read(image, ret->offset, ret->code, ret->size_bytes);
	return err ? err
		   : probe_arch_place_entry(probe_arch_native(), ret->code, ret->size_bytes,
					    function->first_arg + function->schema->nr_args,
					    &ret->place);
}

static void planned_function_deinit(struct planned_function *function)
{
	free(function->code);
}

static bool has_event(const struct probe_file *file, const char *event)
{
	for (size_t i = 0; i < file->nr_probes; i++)
		if (strcmp(file->probes[i].event, event) == 0)
			return true;
	return false;
}

/* Names a new probe after its function and point, with a number if that name exists. */
static int name_event(const struct probe_file *file, const struct allocator_function *function,
		      enum probe_point point, struct probe *probe)
{
	const char *name =
		function->is_named_by_symbol ? function->symbol : function->schema->function;
	size_t len;

	if (probe_schema_event_name(name, point, probe->event, sizeof(probe->event)))
		return -E2BIG;
	len = strlen(probe->event);
	for (int i = 1; has_event(file, probe->event); i++)
		if (snprintf(probe->event + len, sizeof(probe->event) - len, "_%d", i) >=
		    (int)(sizeof(probe->event) - len))
			return -E2BIG;
	return 0;
}

/* Sets what all probes of one point of the function have in common. Returns 0 or -E2BIG. */
static int init_probe(const struct probe_file *file, const struct planned_function *function,
		      enum probe_point point, struct probe *ret)
{
	*ret = (struct probe){
		.schema = function->function->schema,
		.first_arg = function->function->first_arg,
		.point = point,
		.function_offset = function->offset,
		.tracefs_id = -1,
		.instruction = {.class = PLACEMENT_UNKNOWN, .text = "?"},
	};
	memcpy(ret->symbol, function->function->symbol, sizeof(ret->symbol));
	return name_event(file, function->function, point, ret);
}

/* Plans a probe @place bytes into the function. */
static int plan_point(struct probe_file *file, const struct elf_image *image,
		      const struct planned_function *function, enum probe_point point,
		      uint64_t place)
{
	const struct probe_schema *schema = function->function->schema;
	struct probe planned, *probe;

	if (init_probe(file, function, point, &planned))
		return -E2BIG;
	probe = probe_file_append(file);
	if (!probe)
		return -ENOMEM;
	*probe = planned;
	probe->offset = function->offset + place;
	probe_arch_describe_at(image, probe->offset, &probe->instruction);
	if (point == PROBE_ENTRY)
		return entry_args(schema, probe->first_arg, &probe->fetch_args);
	return point == PROBE_RETURN ? return_args(schema, &probe->fetch_args) : 0;
}

/*
 * Plans a probe at each store that may be the one to *memptr. A wrong one does no harm: the parser
 * compares the address with the one at the entry.
 */
static int plan_stores(struct probe_file *file, const struct elf_image *image,
		       const struct planned_function *function)
{
	const struct probe_schema *schema = function->function->schema;
	struct store_site stores[MAX_STORES] = {0};
	int nr = probe_arch_find_stores(probe_arch_native(), function->code, function->size_bytes,
					stores, MAX_STORES);

	if (nr < 0)
		return nr;
	if (nr == 0)
		diag_note("%s: cannot find where %s stores its block; its blocks are not recorded",
			  file->display, function->function->symbol);
	for (int i = 0; i < nr; i++) {
		struct probe *probe;
		int err = plan_point(file, image, function, PROBE_STORE, stores[i].offset);

		if (err)
			return err;
		probe = &file->probes[file->nr_probes - 1];
		if (append_format(&probe->fetch_args, "%s=%%%s:x64 " PROBE_FIELD_BLOCK "=%%%s:x64",
				  schema->arg_names[schema->block_arg], stores[i].base_register,
				  stores[i].value_register))
			return -ENOMEM;
	}
	return 0;
}

/* Plans the probes at the exits: "new_exit", "new_exit_1", ... */
static int plan_exits(struct probe_file *file, const struct exit_planner *planner,
		      const struct planned_function *function)
{
	int err = 0;

	for (size_t i = 0; i < function->exits.nr && !err; i++) {
		struct probe model;

		err = init_probe(file, function, PROBE_EXIT, &model);
		if (!err)
			err = exit_plan_append(file, planner, function->exits.offsets[i], &model,
					       function->offset + function->place, PROBE_FIELD_RET,
					       "x64");
	}
	return err;
}

/*
 * Plans all probes of one function. Those of entry and return share a place, and so a breakpoint.
 */
static int plan_function(struct probe_file *file, const struct exit_planner *planner,
			 const struct planned_function *function)
{
	const struct probe_schema *schema = function->function->schema;
	int err = plan_point(file, planner->image, function, PROBE_ENTRY, function->place);

	if (!err && function->has_exits)
		err = plan_exits(file, planner, function);
	else if (!err && probe_schema_has_return(schema))
		err = plan_point(file, planner->image, function, PROBE_RETURN, function->place);
	if (!err && schema->effect == HEAP_ALLOC_TO_PTR)
		err = plan_stores(file, planner->image, function);
	return err;
}

/*
 * Moves the probes to the entry in each function that has jumps from elsewhere to between its entry
 * and its place.
 */
static int reject_entered(const struct elf_image *image, struct planned_function *functions,
			  size_t nr)
{
	_cleanup_free_ struct code_span *spans = calloc(nr + 1, sizeof(*spans));
	size_t nr_placed = 0;
	int err;

	if (!spans)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++) {
		if (functions[i].place == 0)
			continue;
		spans[nr_placed++] = (struct code_span){
			.first = functions[i].offset + 1,
			.last = functions[i].offset + functions[i].place,
		};
	}
	err = nr_placed > 0 ? code_jumps_find(image, spans, nr_placed) : 0;
	nr_placed = 0;
	for (size_t i = 0; i < nr; i++)
		if (functions[i].place != 0 && spans[nr_placed++].is_entered)
			functions[i].place = 0;
	return err;
}

/* mimalloc's mi_new_n(), mi_new_realloc() and mi_new_reallocn() throw as operators do. */
static bool may_throw(const struct allocator_function *function)
{
	return probe_schema_may_throw(function->schema) ||
	       strncmp(function->symbol, "mi_new", strlen("mi_new")) == 0;
}

/* Returns 1, 0 if the function is to be left out, or a negative errno. */
static int init_function(struct planned_function *ret, struct exit_planner *planner,
			 const struct allocator_function *function)
{
	int err = planned_function_init(ret, planner->image, function);

	ret->has_exits = may_throw(function);
	if (!err && ret->has_exits)
		err = exit_planner_find(planner, &function->code, function->symbol, &ret->exits);
	if (!err)
		return 1;
	planned_function_deinit(ret);
	return err == -ENOTSUP ? 0 : err;
}

static int plan_probes(struct probe_file *file, const struct elf_image *image,
		       const struct allocator *allocator)
{
	_cleanup_free_ struct planned_function *functions =
		calloc(allocator->nr + 1, sizeof(*functions));
	struct exit_planner planner;
	size_t nr = 0;
	int err = functions ? 0 : -ENOMEM;

	exit_planner_init(&planner, image, file->display);
	for (size_t i = 0; err >= 0 && i < allocator->nr; i++) {
		if (allocator->functions[i].is_wrapper)
			continue;
		err = init_function(&functions[nr], &planner, &allocator->functions[i]);
		nr += err > 0;
	}
	if (err >= 0)
		err = reject_entered(image, functions, nr);
	for (size_t i = 0; !err && i < nr; i++)
		err = plan_function(file, &planner, &functions[i]);
	for (size_t i = 0; i < nr; i++)
		planned_function_deinit(&functions[i]);
	exit_planner_deinit(&planner);
	return err;
}

/*
 * Finds where single probes could replace those of a function's entry and return. Only glibc's
 * malloc has them: it is the function that programs call most, and it calls no other allocator,
 * whose events would come before its own.
 */
static int find_points(struct probe *ret, const struct elf_image *image,
		       const struct allocator *allocator)
{
	const struct allocator_function *function =
		allocator_find_code(allocator, ret->function_offset);
	struct single_trap_point points[SINGLE_TRAP_MAX_POINTS];
	int nr;

	if (!function || function->code.offset != ret->function_offset ||
	    strcmp(ret->schema->function, "malloc") != 0)
		return 0;
	nr = probe_arch_find_points(probe_arch_native(), image, &function->code,
				    ret->first_arg + ret->schema->size_arg, points);
	if (nr <= 0)
		return nr;
	ret->points = malloc((size_t)nr * sizeof(*points));
	if (!ret->points)
		return -ENOMEM;
	memcpy(ret->points, points, (size_t)nr * sizeof(*points));
	ret->nr_points = (size_t)nr;
	return 0;
}

static int find_all_points(struct probe_file *file, const struct probe_source *source,
			   const struct allocator *allocator)
{
	int err = 0;

	for (size_t i = 0; i < file->nr_probes && !err && allocator->is_glibc; i++)
		if (file->probes[i].point == PROBE_RETURN)
			err = find_points(&file->probes[i], source->image, allocator);
	return err;
}

static int fill_file(struct probe_file *file, const struct probe_source *source,
		     const struct allocator *allocator)
{
	struct group_name name;
	int err = probe_file_set_source(file, source,
					allocator->nr > 0 ? allocator->name : "USDT probes", &name);

	file->has_size_word = allocator->is_glibc;
	if (!err)
		err = plan_probes(file, source->image, allocator);
	if (!err)
		err = find_all_points(file, source, allocator);
	if (!err)
		err = usdt_plan_probes(file, source->image);
	return err ? err : probe_file_set_group(file, &name);
}

/* Returns 0, or -ENOTSUP, reported, if one of the probes would be refused. */
static int check_instructions(const struct probe_file *file)
{
	for (size_t i = 0; i < file->nr_probes; i++) {
		const struct probe *probe = &file->probes[i];

		if (probe->instruction.class != PLACEMENT_REFUSED)
			continue;
		diag_error("cannot probe %s: a probe is not possible, or not safe, on \"%s\" in %s",
			   file->display, probe->instruction.text, probe->symbol);
		return -ENOTSUP;
	}
	return 0;
}

int probe_plan_file(struct probe_set *set, const struct probe_source *source,
		    const struct allocator *allocator)
{
	struct probe_file file = {.fd = -1};
	int err = usdt_pool_probes_plan_file(set, source);

	if (!err)
		err = fill_file(&file, source, allocator);
	if (err)
		diag_error("cannot plan probes for %s: %s", source->display, strerror(-err));
	else
		err = check_instructions(&file);
	if (!err && file.nr_probes)
		err = probe_set_append(set, &file);
	probe_file_deinit(&file);
	return err;
}
