/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "scan/names/module_symbols.h"

#include "probes/elf/analysis_limit.h"
#include "probes/elf/debug_symbols.h"
#include "probes/elf/elf_image.h"

#include <errno.h>
#include <stdlib.h>

#define MAX_SYMBOLS (1u << 22) /* of a module */

struct data_symbol {
	uint64_t start, end;
	char *name;
};

struct module_file {
	bool is_read, is_open;
	struct elf_image image;
	struct data_symbol *symbols; /* by start */
	size_t nr;
};

void module_symbols_open(struct module_symbols *ret, pid_t pid)
{
	*ret = (struct module_symbols){0};
	if (mapped_files_try_open(&ret->files, pid))
		return;
	ret->modules = calloc(ret->files.nr + 1, sizeof(*ret->modules));
}

void module_symbols_deinit(struct module_symbols *symbols)
{
	for (size_t i = 0; symbols->modules && i < symbols->files.nr; i++) {
		struct module_file *module = &symbols->modules[i];

		for (size_t j = 0; j < module->nr; j++)
			free(module->symbols[j].name);
		free(module->symbols);
		if (module->is_open)
			elf_image_deinit(&module->image);
	}
	free(symbols->modules);
	mapped_files_deinit(&symbols->files);
	*symbols = (struct module_symbols){0};
}

static bool add_symbol(void *context, const struct elf_symbol *symbol)
{
	struct module_file *module = context;
	size_t nr = module->nr;

	if (symbol->is_import || !symbol->size_bytes ||
	    (symbol->type != STT_OBJECT && symbol->type != STT_COMMON) || nr >= MAX_SYMBOLS)
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
	return true;
}

static int compare_symbols(const void *a, const void *b)
{
	const struct data_symbol *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return strcmp(x->name, y->name);
}

static void read_module(struct module_file *module, const struct mapped_file *file)
{
	module->is_read = true;
	if (elf_image_init(&module->image, file->fd))
		return;
	module->is_open = true;
	debug_symbols_use(&module->image, file->path, file->display);
	analysis_limit_begin(ANALYSIS_LIMIT_NS);
	elf_image_visit_symbols(&module->image, add_symbol, module);
	if (analysis_limit_end())
		module->nr = 0;
	if (module->nr)
		qsort(module->symbols, module->nr, sizeof(*module->symbols), compare_symbols);
}

/* The region of the file that @address belongs to: its data may end in memory of no file. */
static const struct scan_region *file_region(const struct snapshot *snapshot, uint64_t address)
{
	size_t i = snapshot_region_index(snapshot, address);
	const struct scan_region *region = &snapshot->regions[i];

	if (i == snapshot->nr_regions || region->start > address)
		return NULL;
	if (!region->inode && i > 0 && region[-1].end == region->start && region[-1].inode &&
	    region[-1].is_writable && region->path[0] == '\0')
		region--;
	return region->inode && !region->is_shared ? region : NULL;
}

/* The address, as linked, of a byte that is @offset behind the file's byte @file_offset. */
static bool linked_address(const struct elf_image *image, uint64_t file_offset, uint64_t offset,
			   uint64_t *ret)
{
	for (size_t i = 0; i < image->nr_program_headers; i++) {
		const GElf_Phdr *header = &image->program_headers[i];
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
	size_t low = 0, high = module->nr;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (module->symbols[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	/* Of several names for one variable, the first. */
	for (; low > 0 && module->symbols[low - 1].end > address; low--)
		if (low == 1 || module->symbols[low - 2].start != module->symbols[low - 1].start)
			return &module->symbols[low - 1];
	return NULL;
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
			read_module(module, &symbols->files.files[i]);
		if (!module->is_open)
			continue;
		if (!linked_address(&module->image, region->file_offset, address - region->start,
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
