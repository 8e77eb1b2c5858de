/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/programs/bpf_formats.h"

#include "common/schema/resource_schema.h"
#include "common/scope.h"
#include "recorder/events/mark_format.h"

#include <inttypes.h>

/* A field of an event; it has 64 bits. */
struct field {
	const char *name;
	const char *type;
	const char *print; /* conversion */
};

#define MAX_FIELDS 5

struct field_list {
	struct field fields[MAX_FIELDS];
	size_t nr;
	char return_name[RESOURCE_FIELD_MAX + 1]; /* of a resource's return value */
};

static void add_field(struct field_list *list, const char *name, const char *type,
		      const char *print)
{
	list->fields[list->nr++] = (struct field){name, type, print};
}

static void add_argument(struct field_list *list, const struct probe_schema *schema, int arg)
{
	add_field(list, schema->arg_names[arg], "u64", arg == schema->block_arg ? "0x%Lx" : "%Lu");
}

static void add_return_value(struct field_list *list, const struct probe_schema *schema)
{
	if (schema->effect == HEAP_ALLOC_TO_PTR)
		add_field(list, PROBE_FIELD_RET, "s64", "%Ld");
	else
		add_field(list, PROBE_FIELD_RET, "u64", "0x%Lx");
}

/* The fields that programs write after the probe's address (and the return address). */
static struct field_list list_fields(const struct probe_schema *schema, enum probe_point point)
{
	struct field_list list = {0};

	switch (point) {
	case PROBE_ENTRY:
		for (int i = 0; i < schema->nr_args; i++)
			add_argument(&list, schema, i);
		add_field(&list, PROBE_FIELD_CALLER, "u64", "0x%Lx");
		break;
	case PROBE_STORE:
		add_argument(&list, schema, schema->block_arg);
		add_field(&list, PROBE_FIELD_BLOCK, "u64", "0x%Lx");
		break;
	case PROBE_CALL:
		add_argument(&list, schema, schema->size_arg);
		add_return_value(&list, schema);
		break;
	case PROBE_RETURN:
	case PROBE_EXIT:
		add_return_value(&list, schema);
		break;
	}
	return list;
}

/*
 * Lists the fields of a resource's event, from its definition for tracefs. A field without a name
 * is written, but not described.
 */
static struct field_list list_resource_fields(const struct probe *probe)
{
	bool is_return = probe_point_is_return(probe->point);
	const struct resource_call *call = resource_call_of(probe->schema);
	struct field_list list = {.nr = 3};

	if (is_return) {
		snprintf(list.return_name, sizeof(list.return_name), "%.*s",
			 (int)strcspn(probe->fetch_args, "="), probe->fetch_args);
		/* A pointer that is compared with NULL, or a number. */
		list.fields[0] = call->failure == RESOURCE_FAILS_BY_NULL
					 ? (struct field){list.return_name, "u64", "0x%Lx"}
					 : (struct field){list.return_name, "s64", "%Ld"};
		if (call->place == RESOURCE_STORED)
			list.fields[1] = (struct field){RESOURCE_FIELD_STORED, "u64", "0x%Lx"};
		return list;
	}
	if (strstr(probe->fetch_args, RESOURCE_FIELD_AT "="))
		list.fields[0] = (struct field){RESOURCE_FIELD_AT, "u64", "0x%Lx"};
	else if (strstr(probe->fetch_args, RESOURCE_FIELD_HANDLE "="))
		list.fields[0] = (struct field){RESOURCE_FIELD_HANDLE, "u64", "0x%Lx"};
	if (strstr(probe->fetch_args, RESOURCE_FIELD_SIZE "="))
		list.fields[1] = (struct field){RESOURCE_FIELD_SIZE, "u64", "%Lu"};
	if (strstr(probe->fetch_args, PROBE_FIELD_CALLER "="))
		list.fields[2] = (struct field){PROBE_FIELD_CALLER, "u64", "0x%Lx"};
	return list;
}

/*
 * Returns the text of tracefs' format file: __trace_define_field() in kernel/trace/trace_events.c.
 */
static char *format_text(const char *event, uint64_t type, enum probe_point point,
			 const struct field_list *list)
{
	bool at_return = probe_point_is_return(point);
	size_t size, offset = at_return ? 24 : 16;
	char *text = NULL;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	fprintf(out, "name: %s\nID: %" PRIu64 "\nformat:\n" COMMON_FIELDS, event, type);
	if (at_return)
		fputs("\tfield:unsigned long __probe_func;\toffset:8;\tsize:8;\tsigned:0;\n"
		      "\tfield:unsigned long __probe_ret_ip;\toffset:16;\tsize:8;\tsigned:0;\n",
		      out);
	else
		fputs("\tfield:unsigned long __probe_ip;\toffset:8;\tsize:8;\tsigned:0;\n", out);
	for (size_t i = 0; i < list->nr; i++, offset += 8)
		if (list->fields[i].name)
			fprintf(out, "\tfield:%s %s;\toffset:%zu;\tsize:8;\tsigned:%d;\n",
				list->fields[i].type, list->fields[i].name, offset,
				list->fields[i].type[0] == 's');
	fprintf(out, "\nprint fmt: \"(%%lx%s", at_return ? " <- %lx)" : ")");
	for (size_t i = 0; i < list->nr; i++)
		if (list->fields[i].name)
			fprintf(out, " %s=%s", list->fields[i].name, list->fields[i].print);
	fputs(at_return ? "\", REC->__probe_func, REC->__probe_ret_ip" : "\", REC->__probe_ip",
	      out);
	for (size_t i = 0; i < list->nr; i++)
		if (list->fields[i].name)
			fprintf(out, ", REC->%s", list->fields[i].name);
	fputc('\n', out);
	if (fclose(out) == 0)
		return text;
	free(text);
	return NULL;
}

char *bpf_format_text(const struct probe *probe, enum probe_point point, const char *event,
		      uint64_t type)
{
	struct field_list list;

	if (probe->schema->effect == HEAP_MARK)
		return mark_format_text(event, type);
	list = probe_schema_is_resource(probe->schema) ? list_resource_fields(probe)
						       : list_fields(probe->schema, point);
	return format_text(event, type, point, &list);
}
