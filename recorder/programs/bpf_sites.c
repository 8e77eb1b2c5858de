/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/programs/bpf_sites.h"

#include "common/schema/probe_events.h"
#include "common/schema/resource_schema.h"
#include "common/scope.h"
#include "probes/plan/probe_file.h"

#include <asm/ptrace.h>
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>

static struct bpf_place *append_place(struct bpf_recorder *programs, const struct probe_file *file,
				      const struct probe *probe)
{
	struct bpf_place *place = &programs->places[programs->nr_places];

	if (programs->nr_places == BPF_REC_MAX_PLACES)
		return NULL;
	programs->nr_places++;
	*place = (struct bpf_place){.file = file, .offset = probe->offset};
	return place;
}

/* The place of @probe's function, in which @probe is the entry or the return. */
static struct bpf_place *find_place(struct bpf_recorder *programs, const struct probe_file *file,
				    const struct probe *probe)
{
	for (size_t i = 0; i < programs->nr_places; i++) {
		struct bpf_place *place = &programs->places[i];
		const struct probe *known = place->entry ? place->entry : place->ret;

		if (place->file == file && known->point != PROBE_STORE &&
		    known->schema == probe->schema &&
		    known->function_offset == probe->function_offset)
			return place;
	}
	return NULL;
}

static int find_file(struct bpf_recorder *programs, const struct probe_file *file,
		     bool only_registered)
{
	for (size_t j = 0; j < file->nr_probes; j++) {
		const struct probe *probe = &file->probes[j];
		struct bpf_place *place = NULL;

		if (only_registered && probe->tracefs_id < 0)
			continue;
		if (probe->point != PROBE_STORE)
			place = find_place(programs, file, probe);
		if (probe->point == PROBE_EXIT) {
			/* Calls whose entry is not watched are not noted. */
			if (place && !place->ret)
				place->ret = probe;
			continue;
		}
		if (!place)
			place = append_place(programs, file, probe);
		if (!place)
			return -E2BIG;
		/* Both are good where the earlier one is: nothing is pushed or changed. */
		if (probe->offset < place->offset)
			place->offset = probe->offset;
		if (probe->point == PROBE_RETURN)
			place->ret = probe;
		else
			place->entry = probe;
	}
	return 0;
}

size_t bpf_place_nr_exits(const struct bpf_place *place)
{
	const struct probe *exit = place->ret, *end = place->file->probes + place->file->nr_probes;
	size_t nr = 1;

	if (!exit || exit->point != PROBE_EXIT)
		return 0;
	while (exit + nr < end && probe_shares_event(exit, exit + nr))
		nr++;
	return nr;
}

int bpf_sites_find(struct bpf_recorder *programs, const struct probe_set *set, bool only_registered)
{
	int err = 0;

	for (size_t i = 0; i < set->nr_files && !err; i++)
		err = find_file(programs, &set->files[i], only_registered);
	return err;
}

static bool is_over_share(const struct bpf_recorder *programs, uid_t owner)
{
	size_t nr_owner = 0, nr_users = 0;

	for (size_t i = 0; i < programs->nr_places; i++) {
		nr_owner += programs->places[i].file->owner == owner;
		nr_users += programs->places[i].file->owner != 0;
	}
	return owner != 0 && (nr_owner > BPF_REC_USER_SHARE || nr_users > BPF_REC_USERS_SHARE);
}

bool bpf_sites_find_file_shared(struct bpf_recorder *programs, const struct probe_file *file,
				bool only_registered)
{
	size_t first = programs->nr_places;

	if (find_file(programs, file, only_registered) == 0 &&
	    !is_over_share(programs, file->owner))
		return true;
	programs->nr_places = first;
	return false;
}

size_t bpf_sites_find_shared(struct bpf_recorder *programs, const struct probe_set *set,
			     bool only_registered, const struct probe_file **ret_left_out)
{
	size_t nr = 0;

	*ret_left_out = NULL;
	for (size_t i = 0; i < set->nr_files; i++) {
		if (bpf_sites_find_file_shared(programs, &set->files[i], only_registered))
			continue;
		if (nr++ == 0)
			*ret_left_out = &set->files[i];
	}
	return nr;
}

/* Those of each tracepoint. */
#define COMMON_FIELDS                                                                              \
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"                     \
	"\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"                     \
	"\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"             \
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"

/* A field of an event, of 64 bits. */
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

/* What the programs write behind the place (and, at a return, where it returns to), in order. */
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
 * The same of a resource's events, whose definition, as tracefs takes it, says what they hold. A
 * field without a name is written, too.
 */
static struct field_list list_resource_fields(const struct probe *probe)
{
	bool is_return = probe_point_is_return(probe->point);
	const struct resource_call *call = resource_call_of(probe->schema);
	struct field_list list = {.nr = 3};

	if (is_return) {
		snprintf(list.return_name, sizeof(list.return_name), "%.*s",
			 (int)strcspn(probe->fetch_args, "="), probe->fetch_args);
		/* A pointer, or a number that is compared. */
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

/* The text of tracefs' format file: __trace_define_field() in kernel/trace/trace_events.c. */
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

/* The same of a mark. */
static char *mark_format_text(const char *event, uint64_t type)
{
	static const char format[] =
		"name: %s\nID: %" PRIu64 "\nformat:\n" COMMON_FIELDS
		"\tfield:unsigned long __probe_ip;\toffset:8;\tsize:8;\tsigned:0;\n"
		"\tfield:__data_loc char[] " PROBE_FIELD_TEXT
		";\toffset:16;\tsize:4;\tsigned:1;\n\n"
		"print fmt: \"(%%lx) " PROBE_FIELD_TEXT
		"=\\\"%%s\\\"\", REC->__probe_ip, __get_str(" PROBE_FIELD_TEXT ")\n";
	char *text = NULL;

	return asprintf(&text, format, event, type) < 0 ? NULL : text;
}

/* What describing the events goes by. */
struct description {
	const struct record_config *config;
	struct record_events *events;
	unsigned int nr;
};

/* Programs write at an exit what a return probe's event would have been, of its name. */
static void name_return(const struct probe *exit, char event[static PROBE_NAME_MAX])
{
	struct resource_event parsed;
	const char *suffix;

	if (resource_event_parse(exit->event, &parsed) == 0) {
		parsed.stage = RESOURCE_RETURN;
		resource_event_format(&parsed, event);
		return;
	}
	/* "new_exit_1": "new_ret_1" */
	suffix = strstr(exit->event, "_exit");
	snprintf(event, PROBE_NAME_MAX, "%.*s_ret%s", (int)(suffix - exit->event), exit->event,
		 suffix + strlen("_exit"));
}

static int describe_event(struct description *to, const struct probe_file *file,
			  const struct probe *probe, enum probe_point point, bool has_stack,
			  struct bpf_event *ret)
{
	bool is_mark = probe->schema->effect == HEAP_MARK;
	const struct field_list list = probe_schema_is_resource(probe->schema)
					       ? list_resource_fields(probe)
					       : list_fields(probe->schema, point);
	uint64_t id = BPF_REC_FIRST_ID + to->nr;
	unsigned int type = BPF_REC_FIRST_TYPE + to->nr++;
	char event[PROBE_NAME_MAX], *name = NULL;

	/* Stores are several: they have names of their own. */
	if (probe->point == PROBE_EXIT)
		name_return(probe, event);
	else if (point == probe->point)
		snprintf(event, sizeof(event), "%s", probe->event);
	else
		probe_schema_event_name(probe->schema->function, point, event, sizeof(event));
	if (asprintf(&name, "%s:%s", file->group, event) < 0)
		return -ENOMEM;
	*ret = (struct bpf_event){.id = id, .type = type, .has_stack = has_stack};
	return record_events_add_written(to->events, to->config, name,
					 is_mark ? mark_format_text(event, type)
						 : format_text(event, type, point, &list),
					 type, id, has_stack);
}

/* Where the kernel keeps a register that tracefs knows as @name; the verifier's limit if nowhere.
 */
static unsigned int register_offset(const char *name, size_t len)
{
#if defined(__x86_64__)
	static const struct {
		const char *name;
		unsigned int offset;
	} registers[] = {
		{"ax", offsetof(struct pt_regs, rax)},	{"bx", offsetof(struct pt_regs, rbx)},
		{"cx", offsetof(struct pt_regs, rcx)},	{"dx", offsetof(struct pt_regs, rdx)},
		{"si", offsetof(struct pt_regs, rsi)},	{"di", offsetof(struct pt_regs, rdi)},
		{"bp", offsetof(struct pt_regs, rbp)},	{"sp", offsetof(struct pt_regs, rsp)},
		{"r8", offsetof(struct pt_regs, r8)},	{"r9", offsetof(struct pt_regs, r9)},
		{"r10", offsetof(struct pt_regs, r10)}, {"r11", offsetof(struct pt_regs, r11)},
		{"r12", offsetof(struct pt_regs, r12)}, {"r13", offsetof(struct pt_regs, r13)},
		{"r14", offsetof(struct pt_regs, r14)}, {"r15", offsetof(struct pt_regs, r15)},
	};

	for (size_t i = 0; i < ARRAY_SIZE(registers); i++)
		if (strlen(registers[i].name) == len && memcmp(registers[i].name, name, len) == 0)
			return registers[i].offset;
#endif
	return 0;
}

/* The registers in a store's "memptr=%r12:x64 block=%ax:x64". */
static void find_registers(const struct probe *store, unsigned int registers[2])
{
	const char *at = store->fetch_args;

	for (int i = 0; i < 2 && (at = strchr(at, '%')); i++) {
		at++;
		registers[i] = register_offset(at, strcspn(at, ":"));
	}
}

/* Where the event's field @name, as its definition says, is read: "handle=+0(%di):x64". */
static unsigned int read_of(const char *fetch_args, const char *name)
{
	size_t len = strlen(name);
	const char *at = fetch_args, *value, *reg;

	for (; at; at = strchr(at, ' ') ? strchr(at, ' ') + 1 : NULL) {
		if (strncmp(at, name, len) != 0 || at[len] != '=')
			continue;
		value = at + len + 1;
		reg = strchr(value, '%');
		if (!reg)
			return 0;
		return (register_offset(reg + 1, strcspn(reg + 1, ":)")) + BPF_REC_READ) |
		       (*value == '+' ? BPF_REC_READ_POINTED : 0);
	}
	return 0;
}

/* What the programs are to read of a resource's function. */
static void find_reads(const struct probe *entry, struct bpf_site *site)
{
	const char *args = entry->fetch_args;

	site->has_caller = strstr(args, PROBE_FIELD_CALLER "=") != NULL;
	site->stores = strstr(args, RESOURCE_FIELD_AT "=") != NULL;
	site->reads[0] = read_of(args, site->stores ? RESOURCE_FIELD_AT : RESOURCE_FIELD_HANDLE);
	site->reads[1] = read_of(args, RESOURCE_FIELD_SIZE);
}

static enum bpf_site_kind kind_of(const struct bpf_place *place)
{
	if (place->file->has_resources)
		return BPF_REC_RESOURCE;
	if (place->entry && place->entry->point == PROBE_STORE)
		return BPF_REC_STORE;
	if (place->entry && place->entry->schema->effect == HEAP_MARK)
		return BPF_REC_MARK;
	if (!place->ret)
		return BPF_REC_RELEASE;
	return place->ret->schema->effect == HEAP_ALLOC_TO_PTR ? BPF_REC_INT_FUNCTION
							       : BPF_REC_FUNCTION;
}

/*
 * True if entry and return are written as one: a third less to write and to read. Only for malloc,
 * inside which nothing else allocates, and only where there is one malloc: one that calls another
 * must be seen to begin before it.
 */
static bool is_one_call(const struct bpf_recorder *programs, const struct bpf_place *place)
{
	size_t nr = 0;

	if (!place->entry || strcmp(place->ret->schema->function, "malloc") != 0)
		return false;
	for (size_t i = 0; i < programs->nr_places; i++)
		nr += programs->places[i].ret &&
		      programs->places[i].ret->schema == place->ret->schema;
	return nr == 1;
}

/* What the programs are to know of the place, but for its events. */
static void fill_site(const struct bpf_place *place, struct bpf_site *site)
{
	const struct probe_schema *schema = (place->entry ? place->entry : place->ret)->schema;

	*site = (struct bpf_site){
		.kind = kind_of(place),
		.nr_args = (unsigned int)schema->nr_args,
		.first_arg = (unsigned int)(place->entry ? place->entry : place->ret)->first_arg,
		.size_arg = schema->size_arg,
		.count_arg = schema->count_arg,
		.block_arg = schema->block_arg,
		.has_size_word = place->file->has_size_word,
	};
	if (place->entry && place->entry->point == PROBE_STORE)
		find_registers(place->entry, site->registers);
	site->has_exits = place->ret && place->ret->point == PROBE_EXIT;
	if (site->kind == BPF_REC_RESOURCE && place->entry)
		find_reads(place->entry, site);
}

/* The events of @schema's row, or NULL. */
static const struct bpf_row *find_row(const struct bpf_recorder *programs,
				      const struct probe_schema *schema)
{
	size_t nr;
	const struct probe_schema *table = probe_schema_table(&nr);

	return schema >= table && schema < table + nr ? &programs->rows[schema - table] : NULL;
}

/* Gives the site the events of its row. False if there are none. */
static bool take_row(const struct bpf_recorder *programs, const struct bpf_place *place,
		     struct bpf_site *site)
{
	const struct probe *any = place->entry ? place->entry : place->ret;
	const struct bpf_row *row = find_row(programs, any->schema);

	if (!row)
		return false;
	if (place->entry)
		site->events[BPF_REC_ENTRY] =
			place->entry->point == PROBE_STORE ? row->store : row->entry;
	if (place->ret)
		site->events[BPF_REC_RETURN] = row->ret;
	return true;
}

static int describe_row_event(struct description *to, const struct probe_schema *schema,
			      enum probe_point point, struct bpf_event *ret)
{
	const struct probe_file any_file = {.group = "leakrec"};
	struct probe probe = {.schema = schema, .point = point};
	bool has_stack =
		to->config->call_graph != CALL_GRAPH_NONE &&
		(point == PROBE_RETURN || record_events_entry_has_stack(&probe, to->config));

	probe_schema_event_name(schema->function, point, probe.event, sizeof(probe.event));
	return describe_event(to, &any_file, &probe, point, has_stack, ret);
}

static int describe_rows(struct bpf_recorder *programs, struct description *to)
{
	size_t nr;
	const struct probe_schema *table = probe_schema_table(&nr);
	int err = 0;

	programs->rows = calloc(nr, sizeof(*programs->rows));
	if (!programs->rows)
		return -ENOMEM;
	for (size_t i = 0; i < nr && !err; i++) {
		struct bpf_row *row = &programs->rows[i];

		err = describe_row_event(to, &table[i], PROBE_ENTRY, &row->entry);
		if (!err && probe_schema_has_return(&table[i]))
			err = describe_row_event(to, &table[i], PROBE_RETURN, &row->ret);
		if (!err && table[i].effect == HEAP_ALLOC_TO_PTR)
			err = describe_row_event(to, &table[i], PROBE_STORE, &row->store);
	}
	return err;
}

static int describe_place(const struct bpf_recorder *programs, const struct bpf_place *place,
			  struct description *to, struct bpf_site *site)
{
	bool stacks = to->config->call_graph != CALL_GRAPH_NONE;
	int err = 0;

	fill_site(place, site);
	if (to->config->scope != RECORD_PROCESSES && take_row(programs, place, site))
		return place->ret && is_one_call(programs, place)
			       ? describe_event(to, place->file, place->ret, PROBE_CALL, stacks,
						&site->events[BPF_REC_CALL])
			       : 0;
	/* Followed children write entry and return (bpf_recorder.bpf.c). */
	if (place->entry)
		err = describe_event(
			to, place->file, place->entry, place->entry->point,
			stacks && record_events_entry_has_stack(place->entry, to->config),
			&site->events[BPF_REC_ENTRY]);
	if (err || !place->ret)
		return err;
	err = describe_event(to, place->file, place->ret, PROBE_RETURN, stacks,
			     &site->events[BPF_REC_RETURN]);
	if (!err && is_one_call(programs, place))
		err = describe_event(to, place->file, place->ret, PROBE_CALL, stacks,
				     &site->events[BPF_REC_CALL]);
	return err;
}

/* 1 more than a register's number, 0: none has the value. */
static unsigned int register_of(int number)
{
	return number >= 0 ? (unsigned int)number + 1 : 0;
}

/* What the programs are to know of a point inside of @place's function. */
static struct bpf_site point_site(const struct bpf_place *place,
				  const struct single_trap_point *outcome,
				  const struct bpf_site *function)
{
	struct bpf_site site = {
		.kind = BPF_REC_POINT,
		.size_register = register_of(outcome->size_register),
		.block_register = register_of(outcome->block_register),
		.has_block = outcome->block_register != SINGLE_TRAP_NOWHERE,
		.frame_words = outcome->frame_bytes / 8,
		.distance = (unsigned int)(place->ret->function_offset + outcome->offset -
					   place->offset),
	};

	static_assert(BPF_REC_SAVED_REGISTERS == SINGLE_TRAP_NR_SAVED, "as many");
	static_assert(BPF_REC_FRAME_WORDS == SINGLE_TRAP_MAX_FRAME_BYTES / 8 + 1, "as large");
	for (int i = 0; i < SINGLE_TRAP_NR_SAVED; i++)
		if (outcome->saved[i] != SINGLE_TRAP_UNCHANGED)
			site.saved[i] = (unsigned char)(outcome->saved[i] / 8 + 1);
	site.events[BPF_REC_CALL] = function->events[BPF_REC_CALL];
	return site;
}

/* Watches points where one hit tells all, wherever they are known. */
static void use_points(struct bpf_recorder *programs, struct bpf_site *sites,
		       const struct record_config *config)
{
	/* Others may want registers that only the return has. */
	if (config->call_graph == CALL_GRAPH_DWARF && !record_config_unwinds(config))
		return;
	/* That a mapping is the allocator's own is told by its pending return, without such stacks.
	 */
	if (config->call_graph != CALL_GRAPH_DWARF && config->syscalls)
		return;
	for (size_t i = 0; i < programs->nr_places; i++) {
		struct bpf_place *place = &programs->places[i];
		const struct bpf_site *function = &sites[i];

		if (!function->events[BPF_REC_CALL].type || !place->ret->nr_points ||
		    programs->nr_points + place->ret->nr_points > BPF_REC_MAX_POINTS)
			continue;
		place->first_point = programs->nr_points;
		place->nr_points = place->ret->nr_points;
		for (size_t j = 0; j < place->nr_points; j++) {
			const struct single_trap_point *outcome = &place->ret->points[j];
			size_t nr = programs->nr_points++;

			programs->points[nr] = (struct bpf_point){place, outcome};
			sites[bpf_point_site(nr)] = point_site(place, outcome, function);
		}
	}
}

/* Inner calls of malloc are to be seen as such. */
static void expect_outer(const struct bpf_recorder *programs, struct bpf_site *sites)
{
	for (size_t i = 0; i < programs->nr_places; i++)
		sites[i].may_be_inner = 1;
}

size_t bpf_sites_fill_late(struct bpf_recorder *programs, struct bpf_site *sites, size_t first)
{
	size_t nr = first;

	for (size_t i = first; i < programs->nr_places; i++) {
		const struct bpf_place place = programs->places[i];
		struct bpf_site site;

		fill_site(&place, &site);
		site.is_late = 1;
		if (!take_row(programs, &place, &site))
			continue;
		programs->places[nr] = place;
		sites[nr++] = site;
	}
	programs->nr_places = nr;
	if (nr > first)
		expect_outer(programs, sites);
	return nr - first;
}

int bpf_sites_describe(struct bpf_recorder *programs, struct bpf_site *sites,
		       const struct record_config *config, struct record_events *events)
{
	struct description to = {.config = config, .events = events};
	int err = describe_rows(programs, &to);

	for (size_t i = 0; i < programs->nr_places && !err; i++)
		err = describe_place(programs, &programs->places[i], &to, &sites[i]);
	if (!err)
		use_points(programs, sites, config);
	return err;
}
