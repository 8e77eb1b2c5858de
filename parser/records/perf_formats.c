/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/records/perf_formats.h"

#include "common/diag.h"
#include "common/schema/probe_events.h"
#include "common/schema/reach_class.h"
#include "common/scope.h"
#include "parser/records/tracing_data.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <traceevent/event-parse.h>

struct perf_formats {
	struct tep_handle *tep;
	struct resource_schemas *resources; /* or NULL */
};

int perf_formats_create(struct resource_schemas *resources, struct perf_formats **ret)
{
	_cleanup_free_ struct perf_formats *formats = calloc(1, sizeof(*formats));

	if (!formats)
		return -ENOMEM;
	/* We report a file's errors ourselves; the library would repeat them. */
	tep_set_loglevel(TEP_LOG_NONE);
	formats->tep = tep_alloc();
	if (!formats->tep)
		return -ENOMEM;
	formats->resources = resources;
	*ret = steal_ptr(formats);
	return 0;
}

void perf_formats_destroy(struct perf_formats *formats)
{
	if (!formats)
		return;
	tep_free(formats->tep);
	free(formats);
}

int perf_formats_add(struct perf_formats *formats, const char *name, uint64_t offset,
		     const uint8_t *data, size_t size_bytes)
{
	return tracing_data_parse(formats->tep, name, offset, data, size_bytes);
}

static bool convert_field(const struct tep_format_field *field, struct perf_field *ret)
{
	const unsigned long no_number =
		TEP_FIELD_IS_ARRAY | TEP_FIELD_IS_STRING | TEP_FIELD_IS_DYNAMIC;

	*ret = (struct perf_field){0};
	if (!field || (field->flags & no_number) || field->offset < 0)
		return false;
	if (field->size != 1 && field->size != 2 && field->size != 4 && field->size != 8)
		return false;
	ret->offset = (uint32_t)field->offset;
	ret->size_bytes = (uint8_t)field->size;
	ret->is_signed = field->flags & TEP_FIELD_IS_SIGNED;
	return true;
}

static bool find_field(struct tep_event *event, const char *name, struct perf_field *ret)
{
	return convert_field(tep_find_field(event, name), ret);
}

/* perf probe numbers arguments that were given without a name: "arg1". */
static bool find_numbered_field(struct tep_event *event, int index, struct perf_field *ret)
{
	char name[] = "arg0";

	name[3] = (char)('1' + index);
	return find_field(event, name, ret);
}

static bool is_own_field(const struct tep_format_field *field)
{
	return strncmp(field->name, "__probe_", strlen("__probe_")) == 0 ||
	       strcmp(field->name, PROBE_FIELD_CALLER) == 0;
}

/* Finds the fields of a user's own probe definition, in order, if there are @nr. */
static bool find_fields_by_place(struct tep_event *event, int nr, struct perf_field *ret)
{
	const struct tep_format_field *field;
	int i = 0;

	for (field = event->format.fields; field; field = field->next) {
		if (is_own_field(field))
			continue;
		if (i >= nr || !convert_field(field, &ret[i]))
			return false;
		i++;
	}
	return i == nr;
}

static void find_args(struct tep_event *event, const struct probe_schema *schema,
		      struct perf_field *ret)
{
	struct perf_field by_place[PROBE_MAX_ARGS];
	bool any = false;

	for (int i = 0; i < schema->nr_args; i++)
		any |= find_field(event, schema->arg_names[i], &ret[i]) ||
		       find_numbered_field(event, i, &ret[i]);
	if (!any && find_fields_by_place(event, schema->nr_args, by_place))
		memcpy(ret, by_place, sizeof(by_place[0]) * (size_t)schema->nr_args);
}

/* As missing_field(), for the fields that identify the call that ends. */
static const char *missing_exit_field(const struct perf_event_fields *fields)
{
	if (!fields->return_address.size_bytes)
		return PROBE_FIELD_CALLER;
	return fields->args[0].size_bytes ? NULL : PROBE_FIELD_FROM_ENTRY;
}

/* Names a field that the event lacks and without which it is useless; NULL: it has all. */
static const char *missing_field(const struct probe_schema *schema, enum probe_point point,
				 const struct perf_event_fields *fields)
{
	const int needed[] = {schema->size_arg, schema->count_arg,
			      schema->effect == HEAP_ALLOC_TO_PTR ? -1 : schema->block_arg};

	if (point == PROBE_RETURN)
		return fields->ret.size_bytes ? NULL : "return value (arg1=$retval)";
	if (point == PROBE_EXIT)
		return fields->ret.size_bytes ? missing_exit_field(fields) : PROBE_FIELD_RET;
	if (point == PROBE_STORE)
		return fields->block.size_bytes ? NULL : PROBE_FIELD_BLOCK;
	if (point == PROBE_CALL && probe_schema_has_return(schema) && !fields->ret.size_bytes)
		return PROBE_FIELD_RET;
	if (point == PROBE_CALL && schema->effect == HEAP_ALLOC_TO_PTR && !fields->block.size_bytes)
		return PROBE_FIELD_BLOCK;
	for (size_t i = 0; i < ARRAY_SIZE(needed); i++)
		if (needed[i] >= 0 && fields->args[needed[i]].size_bytes == 0)
			return schema->arg_names[needed[i]];
	return NULL;
}

/*
 * Finds all fields but the return value. args[0] is the distance from the exit to the entry's
 * probe.
 */
static void find_exit_fields(struct tep_event *format, struct perf_event_fields *fields)
{
	find_field(format, PROBE_FIELD_CALLER, &fields->return_address);
	find_field(format, PROBE_FIELD_FROM_ENTRY, &fields->args[0]);
}

static void find_fields(struct tep_event *format, const struct probe_schema *schema,
			enum probe_point point, struct perf_event_fields *fields)
{
	switch (point) {
	case PROBE_ENTRY:
		find_field(format, PROBE_FIELD_CALLER, &fields->caller);
		find_args(format, schema, fields->args);
		break;
	case PROBE_RETURN:
		find_field(format, "__probe_ret_ip", &fields->return_address);
		if (!find_field(format, PROBE_FIELD_RET, &fields->ret) &&
		    !find_numbered_field(format, 0, &fields->ret) &&
		    !find_fields_by_place(format, 1, &fields->ret))
			fields->ret.size_bytes = 0;
		break;
	case PROBE_EXIT:
		find_exit_fields(format, fields);
		find_field(format, PROBE_FIELD_RET, &fields->ret);
		break;
	case PROBE_STORE:
		find_field(format, PROBE_FIELD_BLOCK, &fields->block);
		if (schema->block_arg >= 0)
			find_field(format, schema->arg_names[schema->block_arg],
				   &fields->args[schema->block_arg]);
		break;
	case PROBE_CALL: /* only our recordings have it, so the fields have our names */
		if (find_field(format, "__probe_ret_ip", &fields->return_address))
			fields->caller = fields->return_address;
		for (int i = 0; i < schema->nr_args; i++)
			find_field(format, schema->arg_names[i], &fields->args[i]);
		find_field(format, PROBE_FIELD_RET, &fields->ret);
		find_field(format, PROBE_FIELD_BLOCK, &fields->block);
		break;
	}
}

/* True for an ordinary probe: not a return probe. */
static bool is_probe_at(enum probe_point point)
{
	return !probe_point_is_return(point) || point == PROBE_EXIT;
}

static void bind_probe(struct tep_event *format, const char *name, struct perf_event *event)
{
	struct perf_event_fields *fields = &event->fields;
	const struct probe_schema *schema;
	enum probe_point point;
	const char *missing;

	if (probe_schema_parse_event(format->name, &schema, &point))
		return;
	/* This event has an allocator's name, but is not a probe. */
	if (!find_field(format, is_probe_at(point) ? "__probe_ip" : "__probe_func",
			&fields->probe_address))
		return;
	find_fields(format, schema, point, fields);
	missing = missing_field(schema, point, fields);
	if (missing) {
		diag_warn("%s: event %s:%s has no %s: its samples are not used", name,
			  format->system, format->name, missing);
		return;
	}
	event->desc.schema = schema;
	event->desc.point = point;
}

/* Finds the field of a resource's return value. Its name says which values mean failure. */
static bool find_return_field(struct tep_event *format, struct resource_call *call,
			      struct perf_field *ret)
{
	const struct tep_format_field *field;

	for (field = format->format.fields; field; field = field->next)
		if (resource_return_field_parse(field->name, call))
			return convert_field(field, ret);
	return false;
}

/* Finds the fields of a resource's event. Returns false if they do not suffice. */
static bool find_resource_fields(struct tep_event *format, enum resource_stage stage,
				 struct resource_call *call, struct perf_event_fields *fields)
{
	if (stage == RESOURCE_RETURN) {
		find_field(format, "__probe_ret_ip", &fields->return_address);
		if (find_field(format, RESOURCE_FIELD_STORED, &fields->block))
			call->place = RESOURCE_STORED;
		return find_field(format, "__probe_func", &fields->probe_address) &&
		       find_return_field(format, call, &fields->ret);
	}
	if (stage == RESOURCE_EXIT) {
		find_exit_fields(format, fields);
		return find_field(format, "__probe_ip", &fields->probe_address) &&
		       !missing_exit_field(fields) && find_return_field(format, call, &fields->ret);
	}
	find_field(format, PROBE_FIELD_CALLER, &fields->caller);
	find_field(format, RESOURCE_FIELD_SIZE, &fields->args[1]);
	if (find_field(format, RESOURCE_FIELD_AT, &fields->args[0]))
		call->place = RESOURCE_STORED;
	else
		find_field(format, RESOURCE_FIELD_HANDLE, &fields->args[0]);
	return find_field(format, "__probe_ip", &fields->probe_address) &&
	       (stage == RESOURCE_ENTRY || fields->args[0].size_bytes);
}

/* An event of a resource, by leakprobe or leakrec (common/schema/resource_schema.h). */
static void bind_resource(const struct perf_formats *formats, struct tep_event *format,
			  const char *name, struct perf_event *event)
{
	struct resource_event parsed;
	struct resource_call *call;

	if (!formats->resources || strncmp(format->system, "leak", strlen("leak")) != 0 ||
	    resource_event_parse(format->name, &parsed))
		return;
	if (resource_schemas_add(formats->resources, &parsed, &call)) {
		diag_warn("%s: too many kinds of events: %s:%s is not used", name, format->system,
			  format->name);
		return;
	}
	if (!find_resource_fields(format, parsed.stage, call, &event->fields)) {
		diag_warn("%s: event %s:%s lacks a field: its samples are not used", name,
			  format->system, format->name);
		return;
	}
	event->desc.schema = &call->schema;
	event->desc.point = parsed.stage == RESOURCE_RETURN ? PROBE_RETURN
			    : parsed.stage == RESOURCE_EXIT ? PROBE_EXIT
							    : PROBE_ENTRY;
}

/* Entry or exit of a system call: the kernel's tracepoints, or what leakrec's programs write. */
static void bind_syscall(struct tep_event *format, const char *name, struct perf_event *event)
{
	struct perf_event_fields *fields = &event->fields;
	const char *missing = NULL;
	bool is_exit;
	const struct syscall_schema *syscall = syscall_schema_parse_event(format->name, &is_exit);

	if (!syscall)
		return;
	if (is_exit) {
		if (!find_field(format, SYSCALL_FIELD_RET, &fields->ret))
			missing = SYSCALL_FIELD_RET;
		find_field(format, SYSCALL_FIELD_CALLER, &fields->caller);
		find_field(format, SYSCALL_FIELD_INSIDE, &fields->inside);
		find_field(format, SYSCALL_FIELD_PAIR, &fields->block);
	}
	for (int i = 0; i < syscall->nr_args && !is_exit; i++)
		if (!find_field(format, syscall->arg_names[i], &fields->args[i]))
			missing = syscall->arg_names[i];
	for (int i = syscall->nr_args; i < SYSCALL_MAX_ARGS && !is_exit; i++)
		if (syscall->arg_names[i])
			find_field(format, syscall->arg_names[i], &fields->args[i]);
	if (missing) {
		diag_warn("%s: event %s:%s has no %s: its samples are not used", name,
			  format->system, format->name, missing);
		return;
	}
	event->desc.syscall = syscall;
	event->desc.is_syscall_exit = is_exit;
}

/* Finds values that are read like arguments. Returns whether all are there. */
static bool bind_values(struct tep_event *format, const char *const *names, size_t nr,
			struct perf_event_fields *fields)
{
	for (size_t i = 0; i < nr; i++)
		if (!find_field(format, names[i], &fields->args[i]))
			return false;
	return true;
}

static bool bind_memory(struct tep_event *format, struct perf_event_fields *fields)
{
	static const char *const names[MEMORY_NR_VALUES] = MEMORY_VALUE_NAMES;

	_Static_assert(MEMORY_NR_VALUES <= PERF_MAX_ARGS, "values are read like arguments");
	return bind_values(format, names, MEMORY_NR_VALUES, fields) &&
	       find_field(format, MEMORY_FIELD_TURN, &fields->mark_number);
}

static bool bind_window(struct tep_event *format, struct perf_event_fields *fields)
{
	/* Older recordings have no pace. */
	find_field(format, WINDOW_FIELD_PACE, &fields->args[WINDOW_PACE]);
	return find_field(format, WINDOW_FIELD_OPEN, &fields->mark_number);
}

static bool bind_look(struct tep_event *format, struct perf_event_fields *fields)
{
	static const char *const names[LOOK_NR_VALUES] = LOOK_VALUE_NAMES;

	_Static_assert(LOOK_NR_VALUES <= PERF_MAX_ARGS, "values are read like arguments");
	return bind_values(format, names, LOOK_NR_VALUES, fields) &&
	       find_field(format, LOOK_FIELD_STATE, &fields->mark_number);
}

static bool bind_calls(struct tep_event *format, struct perf_event_fields *fields)
{
	static const char *const names[CALLS_NR_VALUES] = CALLS_VALUE_NAMES;

	_Static_assert(CALLS_NR_VALUES <= PERF_MAX_ARGS, "values are read like arguments");
	return bind_values(format, names, CALLS_NR_VALUES, fields) &&
	       find_field(format, CALLS_FIELD_NUMBER, &fields->mark_number);
}

static bool bind_segment(struct tep_event *format, struct perf_event_fields *fields)
{
	static const char *const names[SEGMENT_NR_VALUES] = SEGMENT_VALUE_NAMES;

	_Static_assert(SEGMENT_NR_VALUES <= PERF_MAX_ARGS, "values are read like arguments");
	/* Older recordings do not have the later ones. */
	for (size_t i = SEGMENT_ONE_OF + 1; i < SEGMENT_NR_VALUES; i++)
		find_field(format, names[i], &fields->args[i]);
	return bind_values(format, names, SEGMENT_ONE_OF + 1, fields) &&
	       find_field(format, SEGMENT_FIELD_NUMBER, &fields->mark_number);
}

static bool bind_held(struct tep_event *format, struct perf_event_fields *fields)
{
	return find_field(format, HELD_FIELD_NUMBER, &fields->mark_number) &&
	       find_field(format, PROBE_FIELD_TEXT, &fields->mark_text) &&
	       find_field(format, HELD_FIELD_AT, &fields->args[0]);
}

/* The same for what leakscan has said. */
static bool bind_reach(struct tep_event *format, struct perf_event_fields *fields)
{
	static const char *const names[REACH_NR_VALUES] = REACH_VALUE_NAMES;

	for (size_t i = 0; i < REACH_NR_VALUES; i++)
		/* Older recordings have no holders. */
		if (!find_field(format, names[i], &fields->args[i]) && i != REACH_HOLDER)
			return false;
	return find_field(format, REACH_FIELD_CLASS, &fields->mark_number);
}

/*
 * What leakrec itself writes (recorder/output/own_samples.h). Probes may be of the same system.
 * Returns whether the event is bound.
 */
static bool bind_own(struct tep_event *format, struct perf_event *event)
{
	struct perf_event_desc *desc = &event->desc;
	struct perf_field *number = &event->fields.mark_number;

	if (strcmp(format->system, "leakrec") != 0)
		return false;
	if (strcmp(format->name, "mark") == 0)
		desc->is_mark = find_field(format, "number", number);
	else if (strcmp(format->name, "doubt") == 0)
		desc->is_mark = desc->is_doubt = find_field(format, "number", number);
	else if (strcmp(format->name, "recording") == 0)
		desc->is_mark = desc->is_bound = find_field(format, "end", number);
	else if (strcmp(format->name, "memory") == 0)
		desc->is_mark = desc->is_memory = bind_memory(format, &event->fields);
	else if (strcmp(format->name, "reach") == 0)
		desc->is_mark = desc->is_reach = bind_reach(format, &event->fields);
	else if (strcmp(format->name, "window") == 0)
		desc->is_mark = desc->is_window = bind_window(format, &event->fields);
	else if (strcmp(format->name, "look") == 0)
		desc->is_mark = desc->is_look = bind_look(format, &event->fields);
	else if (strcmp(format->name, "calls") == 0)
		desc->is_mark = desc->is_calls = bind_calls(format, &event->fields);
	else if (strcmp(format->name, "segment") == 0)
		desc->is_mark = desc->is_segment = bind_segment(format, &event->fields);
	else if (strcmp(format->name, "held") == 0)
		desc->is_mark = desc->is_held = bind_held(format, &event->fields);
	else if (strcmp(format->name, "holder") == 0 || strcmp(format->name, "unseen") == 0)
		desc->is_mark = desc->is_holder =
			find_field(format, HOLDER_FIELD_NUMBER, number) &&
			find_field(format, PROBE_FIELD_TEXT, &event->fields.mark_text);
	desc->is_unseen = desc->is_holder && strcmp(format->name, "unseen") == 0;
	return desc->is_mark;
}

static void bind_event(const struct perf_formats *formats, struct tep_event *format,
		       const char *name, struct perf_event *event)
{
	struct perf_event_fields *fields = &event->fields;

	event->bound = true;
	event->desc.system = format->system;
	event->desc.name = format->name;
	if (strcmp(format->system, "task") == 0 && strcmp(format->name, "task_newtask") == 0)
		event->desc.is_newtask =
			find_field(format, "pid", &fields->newtask_pid) &&
			find_field(format, "clone_flags", &fields->newtask_clone_flags);
	else if (probe_schema_is_mark(format->name))
		event->desc.is_mark = event->desc.is_probe_mark =
			find_field(format, PROBE_FIELD_TEXT, &fields->mark_text);
	else if (strcmp(format->system, SYSCALL_SYSTEM) == 0)
		bind_syscall(format, name, event);
	else if (!bind_own(format, event))
		bind_probe(format, name, event);
	if (!perf_event_is_operation(&event->desc) && !event->desc.is_newtask &&
	    !event->desc.is_mark)
		bind_resource(formats, format, name, event);
	perf_event_plan_fields(event);
}

void perf_formats_bind(const struct perf_formats *formats, const char *name,
		       struct perf_events *events)
{
	for (size_t i = 0; i < events->nr; i++) {
		struct perf_event *event = events->events[i];
		struct tep_event *format;

		if (event->bound || event->desc.attr.type != PERF_TYPE_TRACEPOINT ||
		    event->desc.attr.config > INT32_MAX)
			continue;
		format = tep_find_event(formats->tep, (int)event->desc.attr.config);
		if (format && format->name && format->system)
			bind_event(formats, format, name, event);
	}
}

static uint64_t extend(uint64_t value, const struct perf_field *field)
{
	unsigned int unused_bits = 64 - 8 * field->size_bytes;

	return field->is_signed ? (uint64_t)((int64_t)(value << unused_bits) >> unused_bits)
				: value;
}

uint64_t perf_field_load(const struct perf_field *field, const uint8_t *raw)
{
	uint64_t value = 0;

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	memcpy(&value, raw + field->offset, field->size_bytes);
#else
	memcpy((uint8_t *)&value + sizeof(value) - field->size_bytes, raw + field->offset,
	       field->size_bytes);
#endif
	return extend(value, field);
}

bool perf_field_read(const struct perf_field *field, const uint8_t *raw, size_t raw_bytes,
		     uint64_t *ret)
{
	*ret = 0;
	if (field->size_bytes == 0)
		return true;
	if (field->offset > raw_bytes || field->size_bytes > raw_bytes - field->offset)
		return false;
	*ret = perf_field_load(field, raw);
	return true;
}
