/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/probe_plan.h"

#include "probes/store_finder.h"

#include "common/diag.h"
#include "common/scope.h"

#include <errno.h>
#include <stdarg.h>

#define MAX_FUNCTIONS 64
#define MAX_STORES    8

/*
 * How a call passes what the probes record: register names are regs_query_register_offset()'s in
 * the kernel's arch/.../kernel/ptrace.c (6.1); which arguments they hold is the System V psABI's
 * respectively the AAPCS64's.
 */
struct probe_abi {
	const char *arguments[PROBE_MAX_ARGS];
	const char *caller; /* the return address at the entry */
};

#if defined(__x86_64__)
static const struct probe_abi native_abi = {{"%di", "%si", "%dx"}, "+0(%sp)"};
#elif defined(__aarch64__)
static const struct probe_abi native_abi = {{"%x0", "%x1", "%x2"}, "%x30"};
#endif

/* The schema's functions in one file. */
struct function_table {
	const struct probe_schema *schemas;
	size_t nr;
	struct elf_function functions[MAX_FUNCTIONS];
};

static void find_schema_functions(const struct elf_image *image, struct function_table *ret)
{
	const char *names[MAX_FUNCTIONS];

	ret->schemas = probe_schema_table(&ret->nr);
	if (ret->nr > MAX_FUNCTIONS)
		ret->nr = MAX_FUNCTIONS;
	for (size_t i = 0; i < ret->nr; i++)
		names[i] = ret->schemas[i].function;
	elf_image_find_functions(image, names, ret->nr, ret->functions);
}

static bool has_function(const struct function_table *table, const char *name)
{
	for (size_t i = 0; i < table->nr; i++)
		if (strcmp(table->schemas[i].function, name) == 0)
			return table->functions[i].is_found;
	return false;
}

bool probe_plan_is_allocator(const struct elf_image *image)
{
	struct function_table table;
	bool has_malloc, has_allocation = false;

	if (!image->is_native)
		return false;
	find_schema_functions(image, &table);
	for (size_t i = 0; i < table.nr; i++)
		has_allocation |=
			table.functions[i].is_found && table.schemas[i].effect != HEAP_RELEASE;
	has_malloc = has_function(&table, "malloc") && has_function(&table, "free");
	if (elf_image_is_static(image) && !elf_image_is_loader(image))
		return has_allocation;
	return has_malloc &&
	       (has_function(&table, "posix_memalign") || !elf_image_is_loader(image));
}

/* Returns the new, zeroed last probe of @file, or NULL. */
static struct probe *append_probe(struct probe_file *file)
{
	struct probe *grown = reallocarray(file->probes, file->nr_probes + 1, sizeof(*grown));

	if (!grown)
		return NULL;
	file->probes = grown;
	grown = &file->probes[file->nr_probes++];
	*grown = (struct probe){.tracefs_id = -1};
	return grown;
}

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

/* Addresses are recorded as x64, sizes and counts as u64, for those who read `perf script`. */
static int entry_args(const struct probe_schema *schema, char **ret)
{
	for (int i = 0; i < schema->nr_args; i++) {
		const char *type = i == schema->block_arg ? "x64" : "u64";

		if (append_format(ret, "%s=%s:%s", schema->arg_names[i], native_abi.arguments[i],
				  type))
			return -ENOMEM;
	}
	return append_format(ret, PROBE_FIELD_CALLER "=%s:x64", native_abi.caller);
}

static int return_args(const struct probe_schema *schema, char **ret)
{
	/* posix_memalign returns an int, whose upper half of the register is anything. */
	return append_format(ret, PROBE_FIELD_RET "=$retval:%s",
			     schema->effect == HEAP_ALLOC_TO_PTR ? "s32" : "x64");
}

static int plan_point(struct probe_file *file, const struct probe_schema *schema,
		      enum probe_point point, uint64_t offset)
{
	struct probe *probe = append_probe(file);

	if (!probe)
		return -ENOMEM;
	probe->schema = schema;
	probe->point = point;
	probe->offset = offset;
	if (probe_schema_event_name(schema, point, probe->event, sizeof(probe->event)))
		return -E2BIG;
	if (point == PROBE_ENTRY)
		return entry_args(schema, &probe->fetch_args);
	return point == PROBE_RETURN ? return_args(schema, &probe->fetch_args) : 0;
}

/* The stores of one function; returns their number or a negative errno. */
static int find_stores(const struct elf_image *image, const struct elf_function *function,
		       struct store_site stores[static MAX_STORES])
{
	_cleanup_free_ uint8_t *code = NULL;
	int err;

#if !defined(__x86_64__)
	return 0; /* the finder decodes x86-64 only */
#endif
	if (function->size_bytes == 0 || function->size_bytes > STORE_FINDER_MAX_CODE_BYTES)
		return 0;
	code = malloc(function->size_bytes);
	if (!code)
		return -ENOMEM;
	err = elf_image_read(image, function->offset, code, function->size_bytes);
	return err ? err : store_finder_find(code, function->size_bytes, stores, MAX_STORES);
}

/*
 * A probe at each store that may be the one to *memptr. A wrong one does no harm: the parser
 * compares the address with the one at the entry.
 */
static int plan_stores(struct probe_file *file, const struct elf_image *image,
		       const struct probe_schema *schema, const struct elf_function *function)
{
	struct store_site stores[MAX_STORES] = {0};
	int nr = find_stores(image, function, stores);

	if (nr < 0)
		return nr;
	if (nr == 0)
		diag_note("%s: where %s stores its block was not found; the blocks it allocates "
			  "will not be followed",
			  file->display, schema->function);
	for (int i = 0; i < nr; i++) {
		struct probe *probe;
		int err =
			plan_point(file, schema, PROBE_STORE, function->offset + stores[i].offset);

		if (err)
			return err;
		probe = &file->probes[file->nr_probes - 1];
		if (append_format(&probe->fetch_args, "%s=%%%s:x64 " PROBE_FIELD_BLOCK "=%%%s:x64",
				  schema->arg_names[schema->block_arg], stores[i].base_register,
				  stores[i].value_register))
			return -ENOMEM;
		if (i > 0) {
			size_t len = strlen(probe->event);

			snprintf(probe->event + len, sizeof(probe->event) - len, "_%d", i);
		}
	}
	return 0;
}

/* True if an earlier row's function has the same address (glibc's aligned_alloc and memalign). */
static bool is_alias(const struct function_table *table, size_t row)
{
	for (size_t i = 0; i < row; i++)
		if (table->functions[i].is_found &&
		    table->functions[i].offset == table->functions[row].offset)
			return true;
	return false;
}

static int plan_probes(struct probe_file *file, const struct elf_image *image)
{
	struct function_table table;

	find_schema_functions(image, &table);
	for (size_t i = 0; i < table.nr; i++) {
		const struct probe_schema *schema = &table.schemas[i];
		const struct elf_function *function = &table.functions[i];
		int err;

		if (!function->is_found || is_alias(&table, i))
			continue;
		err = plan_point(file, schema, PROBE_ENTRY, function->offset);
		if (!err && probe_schema_has_return(schema))
			err = plan_point(file, schema, PROBE_RETURN, function->offset);
		if (!err && schema->effect == HEAP_ALLOC_TO_PTR)
			err = plan_stores(file, image, schema, function);
		if (err)
			return err;
	}
	return 0;
}

struct uprobe_spec probe_plan_spec(const struct probe_file *file, const struct probe *probe)
{
	return (struct uprobe_spec){
		.group = file->group,
		.event = probe->event,
		.is_return = probe->point == PROBE_RETURN,
		.path = file->path,
		.offset = probe->offset,
		.fetch_args = probe->fetch_args,
	};
}

int probe_plan_set_group(struct probe_file *file, const struct group_name *name)
{
	group_name_format(name, file->group);
	for (size_t i = 0; i < file->nr_probes; i++) {
		struct uprobe_spec spec = probe_plan_spec(file, &file->probes[i]);
		char *definition = tracefs_uprobe_definition(&spec);

		if (!definition)
			return -ENOMEM;
		free(file->probes[i].definition);
		file->probes[i].definition = definition;
	}
	return 0;
}

static int fill_file(struct probe_file *file, const struct probe_plan_source *source)
{
	struct group_name name = {.owner = GROUP_OF_LEAKPROBE};
	int err;

	file->path = strdup(source->path);
	file->display = strdup(source->display);
	if (!file->path || !file->display)
		return -ENOMEM;
	group_name_set_file(&name, source->display);
	name.inode_hash = group_name_inode_hash(source->stat->st_dev, source->stat->st_ino);
	err = elf_image_build_hash(source->image, &name.build_hash);
	if (!err)
		err = plan_probes(file, source->image);
	return err ? err : probe_plan_set_group(file, &name);
}

int probe_plan_file(struct probe_set *set, const struct probe_plan_source *source)
{
	struct probe_file file = {.fd = -1}, *grown;
	int err = fill_file(&file, source);

	grown = err ? NULL : reallocarray(set->files, set->nr_files + 1, sizeof(*grown));
	if (!grown) {
		err = err ? err : -ENOMEM;
		diag_error("cannot plan probes for %s: %s", source->display, strerror(-err));
		probe_file_deinit(&file);
		return err;
	}
	set->files = grown;
	set->files[set->nr_files++] = file;
	return 0;
}

void probe_file_deinit(struct probe_file *file)
{
	for (size_t i = 0; i < file->nr_probes; i++) {
		free(file->probes[i].fetch_args);
		free(file->probes[i].definition);
	}
	free(file->probes);
	free(file->path);
	free(file->display);
	if (file->fd >= 0)
		close(file->fd);
}
