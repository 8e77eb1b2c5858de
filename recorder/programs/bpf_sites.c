/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/programs/bpf_sites.h"

#include "common/schema/probe_events.h"
#include "common/schema/resource_schema.h"
#include "common/scope.h"
#include "probes/plan/probe_file.h"
#include "recorder/events/event_attr.h"
#include "recorder/programs/bpf_formats.h"

#include <asm/ptrace.h>
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>

static struct watched_site *append_site(struct watched_sites *sites, const struct probe_file *file,
					const struct probe *probe)
{
	struct watched_site *watched = &sites->watched[sites->nr_watched];

	if (sites->nr_watched == BPF_MAX_WATCHED)
		return NULL;
	sites->nr_watched++;
	*watched = (struct watched_site){.file = file, .offset = probe->offset};
	return watched;
}

/* The site of @probe's function, of which @probe is the entry or the return. */
static struct watched_site *find_site(struct watched_sites *sites, const struct probe_file *file,
				      const struct probe *probe)
{
	for (size_t i = 0; i < sites->nr_watched; i++) {
		struct watched_site *watched = &sites->watched[i];
		const struct probe *known = watched->entry ? watched->entry : watched->ret;

		if (watched->file == file && known->point != PROBE_STORE &&
		    known->schema == probe->schema &&
		    known->function_offset == probe->function_offset)
			return watched;
	}
	return NULL;
}

/* Appends the sites for the probes of a file: entry, return and exits of a function are one site.
 */
static int find_file(struct watched_sites *sites, const struct probe_file *file)
{
	for (size_t j = 0; j < file->nr_probes; j++) {
		const struct probe *probe = &file->probes[j];
		struct watched_site *watched = NULL;

		if (probe->point != PROBE_STORE)
			watched = find_site(sites, file, probe);
		if (probe->point == PROBE_EXIT) {
			/* Without a watched entry, no call is noted, so no exit is seen. */
			if (watched && !watched->ret)
				watched->ret = probe;
			continue;
		}
		if (!watched)
			watched = append_site(sites, file, probe);
		if (!watched)
			return -E2BIG;
		/*
		 * One probe at the earlier offset serves both. In between, nothing is pushed and no
		 * register changes.
		 */
		if (probe->offset < watched->offset)
			watched->offset = probe->offset;
		if (probe->point == PROBE_RETURN)
			watched->ret = probe;
		else
			watched->entry = probe;
	}
	return 0;
}

void watched_sites_deinit(struct watched_sites *sites)
{
	free(sites->rows);
	sites->rows = NULL;
}

uint64_t watched_point_offset(const struct watched_point *point)
{
	return point->site->ret->function_offset + point->point->offset;
}

size_t watched_site_nr_exits(const struct watched_site *watched)
{
	const struct probe *exit = watched->ret,
			   *end = watched->file->probes + watched->file->nr_probes;
	size_t nr = 1;

	if (!exit || exit->point != PROBE_EXIT)
		return 0;
	while (exit + nr < end && probe_is_exit_of_same(exit, exit + nr))
		nr++;
	return nr;
}

int bpf_sites_find(struct watched_sites *sites, const struct probe_set *set)
{
	int err = 0;

	for (size_t i = 0; i < set->nr_files && !err; i++)
		err = find_file(sites, &set->files[i]);
	return err;
}

static bool is_over_share(const struct watched_sites *sites, uid_t owner)
{
	size_t nr_owner = 0, nr_users = 0;

	for (size_t i = 0; i < sites->nr_watched; i++) {
		nr_owner += sites->watched[i].file->owner == owner;
		nr_users += sites->watched[i].file->owner != 0;
	}
	return owner != 0 && (nr_owner > BPF_USER_SHARE || nr_users > BPF_USERS_SHARE);
}

bool bpf_sites_find_file_shared(struct watched_sites *sites, const struct probe_file *file)
{
	size_t first = sites->nr_watched;

	if (find_file(sites, file) == 0 && !is_over_share(sites, file->owner))
		return true;
	sites->nr_watched = first;
	return false;
}

size_t bpf_sites_find_shared(struct watched_sites *sites, const struct probe_set *set,
			     const struct probe_file **ret_left_out)
{
	size_t nr = 0;

	*ret_left_out = NULL;
	for (size_t i = 0; i < set->nr_files; i++) {
		if (bpf_sites_find_file_shared(sites, &set->files[i]))
			continue;
		if (nr++ == 0)
			*ret_left_out = &set->files[i];
	}
	return nr;
}

/* The state while events are described. */
struct description {
	const struct record_config *config;
	struct record_events *events;
	unsigned int nr;
};

/* At an exit, programs write the event of a return probe, under that event's name. */
static void name_return(const struct probe *exit, char event[static PROBE_NAME_MAX])
{
	struct resource_event parsed;
	const char *suffix;

	if (resource_event_parse(exit->event, &parsed) == 0) {
		parsed.stage = RESOURCE_RETURN;
		parsed.exit_number = 0;
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
	uint64_t id = BPF_FIRST_ID + to->nr;
	unsigned int type = BPF_FIRST_TYPE + to->nr++;
	char event[PROBE_NAME_MAX], *name = NULL;

	/* A probe's own name, if it is of this point: a function may have several stores. */
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
					 bpf_format_text(probe, point, event, type), type, id,
					 has_stack);
}

/* The offset in struct pt_regs of the register that tracefs calls @name; 0 if it is not known. */
#if defined(__x86_64__)
static unsigned int register_offset(const char *name, size_t len)
{
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
	return 0;
}
#else
/* x0 to x30, which struct user_pt_regs begins with. */
static unsigned int register_offset(const char *name, size_t len)
{
	unsigned int number = 0;

	for (size_t i = 1; i < len; i++)
		number = number * 10 + (unsigned int)(name[i] - '0');
	return name[0] == 'x' && number <= 30 ? number * (unsigned int)sizeof(uint64_t) : 0;
}
#endif

/* Finds the registers of a store, from fetch arguments such as "memptr=%r12:x64 block=%ax:x64". */
static void find_registers(const struct probe *store, unsigned int registers[2])
{
	const char *at = store->fetch_args;

	for (int i = 0; i < 2 && (at = strchr(at, '%')); i++) {
		at++;
		registers[i] = register_offset(at, strcspn(at, ":"));
	}
}

/* Where the programs read field @name, from fetch arguments such as "handle=+0(%di):x64". */
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
		return (register_offset(reg + 1, strcspn(reg + 1, ":)")) + BPF_READ_REGISTER) |
		       (*value == '+' ? BPF_READ_POINTED : 0);
	}
	return 0;
}

/* Tells the programs what to read at the entry of a resource's function. */
static void find_reads(const struct probe *entry, struct bpf_site *site)
{
	const char *args = entry->fetch_args;

	site->has_caller = strstr(args, PROBE_FIELD_CALLER "=") != NULL;
	site->stores = strstr(args, RESOURCE_FIELD_AT "=") != NULL;
	site->reads[0] = read_of(args, site->stores ? RESOURCE_FIELD_AT : RESOURCE_FIELD_HANDLE);
	site->reads[1] = read_of(args, RESOURCE_FIELD_SIZE);
}

static enum bpf_site_kind kind_of(const struct watched_site *watched)
{
	if (watched->file->has_resources)
		return BPF_SITE_RESOURCE;
	if (watched->entry && watched->entry->point == PROBE_STORE)
		return BPF_SITE_STORE;
	if (watched->entry && watched->entry->schema->effect == HEAP_MARK)
		return BPF_SITE_MARK;
	if (!watched->ret)
		return BPF_SITE_RELEASE;
	return watched->ret->schema->effect == HEAP_ALLOC_TO_PTR ? BPF_SITE_INT_FUNCTION
								 : BPF_SITE_FUNCTION;
}

/*
 * True if entry and return are written as one event, which saves a third of the bytes. Only malloc
 * qualifies, because nothing else allocates inside it, and only where there is one malloc: where
 * one malloc calls another, the parser must see the outer one begin first.
 */
static bool is_one_call(const struct watched_sites *sites, const struct watched_site *watched)
{
	size_t nr = 0;

	if (!watched->entry || strcmp(watched->ret->schema->function, "malloc") != 0)
		return false;
	for (size_t i = 0; i < sites->nr_watched; i++)
		nr += sites->watched[i].ret &&
		      sites->watched[i].ret->schema == watched->ret->schema;
	return nr == 1;
}

/* Tells the programs about the site, except for its events. */
static void fill_site(const struct watched_site *watched, struct bpf_site *site)
{
	const struct probe_schema *schema =
		(watched->entry ? watched->entry : watched->ret)->schema;

	*site = (struct bpf_site){
		.kind = kind_of(watched),
		.nr_args = (unsigned int)schema->nr_args,
		.first_arg =
			(unsigned int)(watched->entry ? watched->entry : watched->ret)->first_arg,
		.size_arg = schema->size_arg,
		.count_arg = schema->count_arg,
		.block_arg = schema->block_arg,
		.has_size_word = watched->file->has_size_word,
	};
	if (watched->entry && watched->entry->point == PROBE_STORE)
		find_registers(watched->entry, site->registers);
	if (watched->entry) {
		site->call_bytes = watched->entry->call.size_bytes;
		site->target_distance = watched->entry->call.distance;
		site->pointer_distance = watched->entry->call.pointer_distance;
	}
	site->has_exits = watched->ret && watched->ret->point == PROBE_EXIT;
	if (site->kind == BPF_SITE_RESOURCE && watched->entry)
		find_reads(watched->entry, site);
}

/* The events of @schema's row, or NULL. */
static const struct schema_events *find_row(const struct watched_sites *sites,
					    const struct probe_schema *schema)
{
	size_t nr;
	const struct probe_schema *table = probe_schema_table(&nr);

	return schema >= table && schema < table + nr ? &sites->rows[schema - table] : NULL;
}

/* Gives the site the events of its row of the schema. Returns false if there are none. */
static bool use_row(const struct watched_sites *sites, const struct watched_site *watched,
		    struct bpf_site *site)
{
	const struct probe *any = watched->entry ? watched->entry : watched->ret;
	const struct schema_events *row = find_row(sites, any->schema);

	if (!row)
		return false;
	if (watched->entry)
		site->events[BPF_EVENT_ENTRY] =
			watched->entry->point == PROBE_STORE ? row->store : row->entry;
	if (watched->ret)
		site->events[BPF_EVENT_RETURN] = row->ret;
	return true;
}

static int describe_row_event(struct description *to, const struct probe_schema *schema,
			      enum probe_point point, struct bpf_event *ret)
{
	const struct probe_file any_file = {.group = "leakrec"};
	struct probe probe = {.schema = schema, .point = point};
	bool has_stack = to->config->call_graph != CALL_GRAPH_NONE &&
			 (point == PROBE_RETURN || event_attr_entry_has_stack(&probe, to->config));

	probe_schema_event_name(schema->function, point, probe.event, sizeof(probe.event));
	return describe_event(to, &any_file, &probe, point, has_stack, ret);
}

static int describe_rows(struct watched_sites *sites, struct description *to)
{
	size_t nr;
	const struct probe_schema *table = probe_schema_table(&nr);
	int err = 0;

	sites->rows = calloc(nr, sizeof(*sites->rows));
	if (!sites->rows)
		return -ENOMEM;
	for (size_t i = 0; i < nr && !err; i++) {
		struct schema_events *row = &sites->rows[i];

		err = describe_row_event(to, &table[i], PROBE_ENTRY, &row->entry);
		if (!err && probe_schema_has_return(&table[i]))
			err = describe_row_event(to, &table[i], PROBE_RETURN, &row->ret);
		if (!err && table[i].effect == HEAP_ALLOC_TO_PTR)
			err = describe_row_event(to, &table[i], PROBE_STORE, &row->store);
	}
	return err;
}

static int describe_site(const struct watched_sites *sites, const struct watched_site *watched,
			 struct description *to, struct bpf_site *site)
{
	bool stacks = to->config->call_graph != CALL_GRAPH_NONE;
	int err = 0;

	fill_site(watched, site);
	/* Many calls of one function share its events. */
	if (to->config->at_calls)
		return use_row(sites, watched, site) ? 0 : -EINVAL;
	if (to->config->scope != RECORD_PROCESSES && use_row(sites, watched, site))
		return watched->ret && is_one_call(sites, watched)
			       ? describe_event(to, watched->file, watched->ret, PROBE_CALL, stacks,
						&site->events[BPF_EVENT_CALL])
			       : 0;
	/* Followed children write entry and return (bpf_recorder.bpf.c). */
	if (watched->entry)
		err = describe_event(to, watched->file, watched->entry, watched->entry->point,
				     stacks &&
					     event_attr_entry_has_stack(watched->entry, to->config),
				     &site->events[BPF_EVENT_ENTRY]);
	if (err || !watched->ret)
		return err;
	err = describe_event(to, watched->file, watched->ret, PROBE_RETURN, stacks,
			     &site->events[BPF_EVENT_RETURN]);
	if (!err && is_one_call(sites, watched))
		err = describe_event(to, watched->file, watched->ret, PROBE_CALL, stacks,
				     &site->events[BPF_EVENT_CALL]);
	return err;
}

/* A register as struct bpf_site has it: its number plus 1, or 0 for none. */
static unsigned int register_of(int number)
{
	return number >= 0 ? (unsigned int)number + 1 : 0;
}

/* Makes the programs' description of a point inside of @watched's function. */
static struct bpf_site point_site(const struct watched_site *watched,
				  const struct single_trap_point *point,
				  const struct bpf_site *function)
{
	struct bpf_site site = {
		.kind = BPF_SITE_POINT,
		.size_register = register_of(point->size_register),
		.block_register = register_of(point->block_register),
		.has_block = point->block_register != SINGLE_TRAP_NOWHERE,
		.frame_words = point->frame_bytes / 8,
		.distance = (unsigned int)(watched->ret->function_offset + point->offset -
					   watched->offset),
	};

	static_assert(BPF_SAVED_REGISTERS == SINGLE_TRAP_NR_SAVED, "as many");
	static_assert(BPF_FRAME_WORDS == SINGLE_TRAP_MAX_FRAME_BYTES / 8 + 1, "as large");
	for (int i = 0; i < SINGLE_TRAP_NR_SAVED; i++)
		if (point->saved[i] != SINGLE_TRAP_UNCHANGED)
			site.saved[i] = (unsigned char)(point->saved[i] / 8 + 1);
	site.events[BPF_EVENT_CALL] = function->events[BPF_EVENT_CALL];
	return site;
}

/* Watches points instead of entry and return, if the points are known. */
static void use_points(struct watched_sites *sites, struct bpf_site *table,
		       const struct record_config *config)
{
	/*
	 * The file may be read by another unwinder, which may need registers as they are at the
	 * return.
	 */
	if (config->call_graph == CALL_GRAPH_DWARF && !record_config_unwinds(config))
		return;
	/*
	 * A pending return shows that a mapping was made by the allocator itself. Dumps show that,
	 * too.
	 */
	if (config->call_graph != CALL_GRAPH_DWARF && config->syscalls)
		return;
	for (size_t i = 0; i < sites->nr_watched; i++) {
		struct watched_site *watched = &sites->watched[i];
		const struct bpf_site *function = &table[i];

		if (!function->events[BPF_EVENT_CALL].type || !watched->ret->nr_points ||
		    sites->nr_points + watched->ret->nr_points > BPF_MAX_POINTS)
			continue;
		watched->first_point = sites->nr_points;
		watched->nr_points = watched->ret->nr_points;
		for (size_t j = 0; j < watched->nr_points; j++) {
			const struct single_trap_point *point = &watched->ret->points[j];
			size_t nr = sites->nr_points++;

			sites->points[nr] = (struct watched_point){watched, point};
			table[bpf_point_index(nr)] = point_site(watched, point, function);
		}
	}
}

/* From now on, another function may call malloc: its entries and returns become separate events. */
static void expect_outer(const struct watched_sites *sites, struct bpf_site *table)
{
	for (size_t i = 0; i < sites->nr_watched; i++)
		table[i].may_be_inner = 1;
}

size_t bpf_sites_fill_late(struct watched_sites *sites, struct bpf_site *table, size_t first)
{
	size_t nr = first;

	for (size_t i = first; i < sites->nr_watched; i++) {
		const struct watched_site watched = sites->watched[i];
		struct bpf_site site;

		fill_site(&watched, &site);
		site.is_late = 1;
		if (!use_row(sites, &watched, &site))
			continue;
		sites->watched[nr] = watched;
		table[nr++] = site;
	}
	sites->nr_watched = nr;
	if (nr > first)
		expect_outer(sites, table);
	return nr - first;
}

int bpf_sites_describe(struct watched_sites *sites, struct bpf_site *table,
		       const struct record_config *config, struct record_events *events)
{
	struct description to = {.config = config, .events = events};
	int err = describe_rows(sites, &to);

	for (size_t i = 0; i < sites->nr_watched && !err; i++)
		err = describe_site(sites, &sites->watched[i], &to, &table[i]);
	if (!err)
		use_points(sites, table, config);
	return err;
}
