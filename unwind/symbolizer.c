/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/symbolizer.h"

#include "common/scope.h"
#include "unwind/symbol_table.h"
#include "unwind/unit_ranges.h"

#include <errno.h>
#include <stdlib.h>

struct place {
	uint64_t vaddr;
	struct symbol *symbol; /* NULL: none */
	const char *file;      /* NULL: not known */
	int line;
	UT_hash_handle hh;
};

struct module_symbols {
	Dwfl *dwfl; /* the module alone, at its ELF addresses; NULL: the file was not found */
	Dwfl_Module *module;
	struct symbol_table table;
	struct unit_ranges units;
	bool units_read; /* not before an address is met that has no line otherwise */
	struct place *places;
};

void symbolizer_init(struct symbolizer *symbolizer, struct module_table *modules,
		     struct debuginfo *debuginfo)
{
	*symbolizer = (struct symbolizer){.modules = modules, .debuginfo = debuginfo};
}

static void module_symbols_destroy(struct module_symbols *symbols)
{
	struct place *place, *next;

	if (!symbols)
		return;
	HASH_ITER (hh, symbols->places, place, next) {
		HASH_DELETE(hh, symbols->places, place);
		free(place);
	}
	unit_ranges_deinit(&symbols->units);
	symbol_table_deinit(&symbols->table);
	dwfl_end(symbols->dwfl);
	free(symbols);
}

void symbolizer_deinit(struct symbolizer *symbolizer)
{
	for (size_t i = 0; i < symbolizer->nr; i++)
		module_symbols_destroy(symbolizer->by_id[i]);
	free(symbolizer->by_id);
}

/* Hands the module's file to libdwfl, at bias 0. A file that libdwfl rejects has no names. */
static int load_symbols(struct symbolizer *symbolizer, struct module *module,
			struct module_symbols *symbols)
{
	_cleanup_close_ int fd = module_open_file(symbolizer->modules, module);

	if (fd < 0)
		return 0;
	symbols->dwfl = dwfl_begin(&symbolizer->debuginfo->callbacks);
	if (!symbols->dwfl)
		return -ENOMEM;
	dwfl_report_begin(symbols->dwfl);
	symbols->module =
		dwfl_report_elf(symbols->dwfl, module->path, module->file_path, fd, 0, true);
	if (symbols->module)
		(void)steal_fd(fd);
	dwfl_report_end(symbols->dwfl, NULL, NULL);
	return symbols->module ? symbol_table_init(&symbols->table, symbols->module) : 0;
}

static int get_symbols(struct symbolizer *symbolizer, struct module *module,
		       struct module_symbols **ret)
{
	if (module->id > symbolizer->nr) {
		size_t nr = symbolizer->modules->nr;
		struct module_symbols **by_id =
			reallocarray(symbolizer->by_id, nr, sizeof(struct module_symbols *));

		if (!by_id)
			return -ENOMEM;
		for (size_t i = symbolizer->nr; i < nr; i++)
			by_id[i] = NULL;
		symbolizer->by_id = by_id;
		symbolizer->nr = nr;
	}

	struct module_symbols **slot = &symbolizer->by_id[module->id - 1];
	if (!*slot) {
		struct module_symbols *symbols = calloc(1, sizeof(*symbols));
		int err = symbols ? load_symbols(symbolizer, module, symbols) : -ENOMEM;

		if (err) {
			module_symbols_destroy(symbols);
			return err;
		}
		*slot = symbols;
	}
	*ret = *slot;
	return 0;
}

static int find_line(struct module_symbols *symbols, struct place *place)
{
	Dwfl_Line *line = dwfl_module_getsrc(symbols->module, place->vaddr);

	if (line) {
		place->file = dwfl_lineinfo(line, NULL, &place->line, NULL, NULL, NULL);
	} else {
		int err = symbols->units_read ? 0
					      : unit_ranges_init(&symbols->units, symbols->module);

		if (err)
			return err;
		symbols->units_read = true;
		place->file = unit_ranges_line(&symbols->units, place->vaddr, &place->line);
	}
	/* Line 0 is the compiler's mark for code of no line. */
	if (place->line <= 0)
		place->file = NULL;
	return 0;
}

static int get_place(struct module_symbols *symbols, uint64_t vaddr, struct place **ret)
{
	struct place *place;

	HASH_FIND(hh, symbols->places, &vaddr, sizeof(vaddr), place);
	if (!place) {
		place = calloc(1, sizeof(*place));
		if (!place)
			return -ENOMEM;
		place->vaddr = vaddr;
		place->symbol = symbol_table_find(&symbols->table, vaddr);
		if (find_line(symbols, place)) {
			free(place);
			return -ENOMEM;
		}
		HASH_ADD(hh, symbols->places, vaddr, sizeof(place->vaddr), place);
		if (!hash_added(place)) {
			free(place);
			return -ENOMEM;
		}
	}
	*ret = place;
	return 0;
}

int symbolizer_name(struct symbolizer *symbolizer, struct module *module, uint64_t file_offset,
		    bool is_call, struct stack_frame *frame)
{
	struct module_symbols *symbols = NULL;
	struct place *place;
	uint64_t vaddr;

	int err = get_symbols(symbolizer, module, &symbols);
	if (err)
		return err;

	frame->module = module->path;
	frame->module_offset = file_offset;
	if (!module_vaddr(module, file_offset - is_call, &vaddr))
		return 0;
	frame->module_offset = vaddr + is_call;
	if (!symbols->module)
		return 0;

	err = get_place(symbols, vaddr, &place);
	if (err)
		return err;
	if (place->symbol) {
		frame->function = symbol_name(place->symbol);
		if (!frame->function)
			return -ENOMEM;
		frame->function_offset = frame->module_offset - place->symbol->start;
	}
	frame->file = place->file;
	frame->line = place->file ? place->line : 0;
	return 0;
}
