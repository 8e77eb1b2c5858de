/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "scan/names/module_symbols.h"

#include "common/partition_point.h"
#include "common/scope.h"
#include "probes/elf/analysis_limit.h"
#include "probes/elf/debug_symbols.h"
#include "probes/elf/elf_image.h"

#include <errno.h>
#include <stdlib.h>

/* Of all modules; what is beyond has no names. */
#define MAX_SYMBOLS    (1u << 22)
#define MAX_NAME_BYTES (256u << 20)
#define MAX_CPU_NS     (10 * 1000000000ull)

struct data_symbol {
	uint64_t start, end;
	char *name;
};

struct module_file {
	bool is_read, is_open;
	GElf_Phdr *headers;
	size_t nr_headers;
	struct data_symbol *symbols; /* by start; each has another one */
	size_t nr;
};

struct reading {
	struct module_symbols *symbols;
	struct module_file *module;
};

void module_symbols_open(struct module_symbols *ret, pid_t pid)
{
	*ret = (struct module_symbols){0};
	if (mapped_files_try_open(&ret->files, pid))
		return;
	ret->modules = calloc(ret->files.nr + 1, sizeof(*ret->modules));
}

static void drop_symbols(struct module_file *module)
{
	for (size_t i = 0; i < module->nr; i++)
		free(module->symbols[i].name);
	module->nr = 0;
}

void module_symbols_deinit(struct module_symbols *symbols)
{
	for (size_t i = 0; symbols->modules && i < symbols->files.nr; i++) {
		struct module_file *module = &symbols->modules[i];

		drop_symbols(module);
		free(module->symbols);
		free(module->headers);
	}
	free(symbols->modules);
	mapped_files_deinit(&symbols->files);
	*symbols = (struct module_symbols){0};
}

static bool add_symbol(void *context, const struct elf_symbol *symbol)
{
	const struct reading *reading = context;
	struct module_symbols *symbols = reading->symbols;
	struct module_file *module = reading->module;
	size_t nr = module->nr, name_bytes = strlen(symbol->name) + 1;

	if (symbol->is_import || !symbol->size_bytes ||
	    (symbol->type != STT_OBJECT && symbol->type != STT_COMMON) ||
	    symbols->nr_symbols >= MAX_SYMBOLS || name_bytes > MAX_NAME_BYTES - symbols->name_bytes)
		return true;
	if ((nr & (nr - 1)) == 0) {
		struct data_symbol *grown =
			reallocarray(module->symbols, nr ? nr * 2 : 1, sizeof(*grown));

		if (!grown)
			return false;
		module->symbols = grown;
	}
	module->symbols[nr] = (struct data_symbol){
		symbol->address, symbol->address + symbol->size_bytes, strdup(symbol->name)};
	if (!module->symbols[nr].name)
		return false;
	module->nr++;
	symbols->nr_symbols++;
	symbols->name_bytes += name_bytes;
	return true;
}

static int compare_symbols(const void *a, const void *b)
{
	const struct data_symbol *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->end != y->end)
		return x->end > y->end ? -1 : 1;
	return strcmp(x->name, y->name);
}

/* Of several names for one variable, the first. A hostile file has a million for each. */
static void keep_one_name_each(struct module_file *module)
{
	size_t nr = module->nr;

	module->nr = 0;
	if (nr)
		qsort(module->symbols, nr, sizeof(*module->symbols), compare_symbols);
	for (size_t i = 0; i < nr; i++) {
		if (module->nr && module->symbols[module->nr - 1].start == module->symbols[i].start)
			free(module->symbols[i].name);
		else
			module->symbols[module->nr++] = module->symbols[i];
	}
}

static void read_module(struct module_symbols *symbols, struct module_file *module,
			const struct mapped_file *file)
{
	struct reading reading = {symbols, module};
	uint64_t began_ns = analysis_limit_thread_ns();
	struct elf_image image;

	module->is_read = true;
	if (symbols->cpu_ns >= MAX_CPU_NS || elf_image_init(&image, file->fd))
		return;
	module->is_open = true;
	debug_symbols_use(&image, file->path, file->display);
	analysis_limit_begin(ANALYSIS_LIMIT_NS);
	elf_image_visit_symbols(&image, add_symbol, &reading);
	if (analysis_limit_end())
		drop_symbols(module);
	keep_one_name_each(module);
	/* Its names may be large. */
	module->headers = steal_ptr(image.program_headers);
	module->nr_headers = image.nr_program_headers;
	elf_image_deinit(&image);
	symbols->cpu_ns += analysis_limit_thread_ns() - began_ns;
}

/* The region of the file that @address belongs to: its data may end in memory of no file. */
static const struct scan_region *file_region(const struct snapshot *snapshot, uint64_t address)
{
	size_t i = snapshot_region_index(snapshot, address);
	const struct scan_region *region = &snapshot->regions[i];

	if (i == snapshot->nr_regions || region->start > address)
		return NULL;
	if (!region->has_file && i > 0 && region[-1].end == region->start && region[-1].has_file &&
	    region[-1].is_writable && region->path[0] == '\0')
		region--;
	return region->has_file && !region->is_shared ? region : NULL;
}

/* The address, as linked, of a byte that is @offset behind the file's byte @file_offset. */
static bool linked_address(const struct module_file *module, uint64_t file_offset, uint64_t offset,
			   uint64_t *ret)
{
	for (size_t i = 0; i < module->nr_headers; i++) {
		const GElf_Phdr *header = &module->headers[i];
		uint64_t first = header->p_offset & ~(uint64_t)(SCAN_PAGE_SIZE - 1);

		/* Two segments may have bytes of one page: the one with the data is the last. */
		if (header->p_type != PT_LOAD || !(header->p_flags & PF_W) || file_offset < first ||
		    file_offset + offset >= header->p_offset + header->p_memsz)
			continue;
		*ret = header->p_vaddr - header->p_offset + file_offset + offset;
		return true;
	}
	return false;
}

static const struct data_symbol *find_symbol(const struct module_file *module, uint64_t address)
{
	size_t nr = partition_point(module->nr, i, module->symbols[i].start <= address);

	return nr > 0 && module->symbols[nr - 1].end > address ? &module->symbols[nr - 1] : NULL;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

void module_symbols_find(struct module_symbols *symbols, const struct snapshot *snapshot,
			 uint64_t address, struct module_place *ret)
{
	const struct scan_region *region = file_region(snapshot, address);
	const struct data_symbol *symbol;
	uint64_t linked;

	*ret = (struct module_place){0};
	if (!region)
		return;
	ret->module = base_name(region->path);
	ret->offset = region->file_offset + (address - region->start);
	for (size_t i = 0; symbols->modules && i < symbols->files.nr; i++) {
		struct module_file *module = &symbols->modules[i];

		if (symbols->files.files[i].stat.st_ino != region->inode)
			continue;
		if (!module->is_read)
			read_module(symbols, module, &symbols->files.files[i]);
		if (!module->is_open)
			continue;
		if (!linked_address(module, region->file_offset, address - region->start,
				    &linked)) {
			/* Memory of no file often follows the module's data, in one mapping. */
			if (address >= region->end)
				*ret = (struct module_place){0};
			return;
		}
		ret->offset = linked;
		symbol = find_symbol(module, linked);
		if (symbol) {
			ret->symbol = symbol->name;
			ret->offset = linked - symbol->start;
		}
		return;
	}
}
