/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/names/symbolizer.h"

#include "common/scope.h"
#include "unwind/modules/cut_file.h"
#include "unwind/modules/module_file.h"
#include "unwind/modules/module_segments.h"
#include "unwind/names/demangler.h"
#include "unwind/names/inline_calls.h"
#include "unwind/names/jit_names.h"
#include "unwind/names/symbol_table.h"
#include "unwind/names/unit_ranges.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(STACK_MAX_INLINED == INLINE_CALLS_MAX, "one bound, told twice");

/* Reading larger files may take seconds and much memory, so they are read only when needed. */
#define MAX_EXPECTED_BYTES ((uint64_t)16 << 20) /* all modules' files together */
#define MAX_EXPECTED	   64			/* libdwfl keeps them open */

/* A function of the source at a position. */
struct position_function {
	char *name;	/* demangled; NULL: not known */
	uint64_t start; /* start of the range of its code that holds the position */
	char *file;	/* NULL: not known */
	int line;
};

struct position {
	uint64_t vaddr;
	struct symbol *symbol; /* NULL: none */
	UT_hash_handle hh;
	size_t nr;
	struct position_function functions[]; /* innermost first; the last is the symbol's */
};

struct module_symbols {
	Dwfl *dwfl; /* holds only the module, at bias 0; NULL: the file was not found */
	Dwfl_Module *module;
	struct symbol_table table;
	bool table_read;
	struct unit_ranges units;
	bool units_read; /* read only if an address's unit is not known otherwise */
	struct inline_calls inline_calls;
	struct position *positions;
	struct jit_names jit; /* names of code without a file */
};

void symbolizer_init(struct symbolizer *symbolizer, struct module_table *modules,
		     struct debuginfo *debuginfo)
{
	*symbolizer = (struct symbolizer){.modules = modules, .debuginfo = debuginfo};
}

static void position_destroy(struct position *position)
{
	for (size_t i = 0; i < position->nr; i++) {
		free(position->functions[i].name);
		free(position->functions[i].file);
	}
	free(position);
}

static void module_symbols_destroy(struct module_symbols *symbols)
{
	struct position *position, *next;

	if (!symbols)
		return;
	HASH_ITER (hh, symbols->positions, position, next) {
		HASH_DELETE(hh, symbols->positions, position);
		position_destroy(position);
	}
	jit_names_deinit(&symbols->jit);
	inline_calls_deinit(&symbols->inline_calls);
	unit_ranges_deinit(&symbols->units);
	symbol_table_deinit(&symbols->table);
	dwfl_end(symbols->dwfl);
	free(symbols);
}

/* Stops the thread that opens expected files, after the file that it is opening. */
static void end_opening(struct symbolizer *symbolizer)
{
	if (!symbolizer->is_opening)
		return;
	atomic_store(&symbolizer->opened_enough, true);
	pthread_join(symbolizer->opener, NULL);
	symbolizer->is_opening = false;
}

void symbolizer_deinit(struct symbolizer *symbolizer)
{
	end_opening(symbolizer);
	free(symbolizer->expected);
	for (size_t i = 0; i < symbolizer->nr; i++)
		module_symbols_destroy(symbolizer->by_id[i]);
	free(symbolizer->by_id);
}

/*
 * Opens the module's file or, if that is missing, its debug file, which has names as well. Stores
 * in *@ret_path a string that the caller frees. Returns a descriptor that the caller closes, or -1.
 */
static int open_file(struct symbolizer *symbolizer, struct module *module, char **ret_path)
{
	int fd = module_open_file(symbolizer->modules, module);

	if (fd >= 0) {
		*ret_path = strdup(module->file_path);
		return fd;
	}
	if (!module->has_file || !module->build_id_size || module->state != MODULE_MISSING)
		return -1;
	fd = debuginfo_find(symbolizer->debuginfo, module->path, module->build_id,
			    module->build_id_size, ret_path);
	if (fd >= 0 && module_use_debug_file(module, fd)) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Reports the module's file to libdwfl, at bias 0. A file that libdwfl rejects has no names. */
static int report_file(struct module *module, struct debuginfo *debuginfo, const char *path,
		       int *fd, struct module_symbols *symbols)
{
	symbols->dwfl = path ? dwfl_begin(&debuginfo->callbacks) : NULL;
	if (!symbols->dwfl)
		return -ENOMEM;
	dwfl_report_begin(symbols->dwfl);
	symbols->module = debuginfo_report_elf(debuginfo, symbols->dwfl, module->path, path,
					       steal_fd(*fd), 0);
	dwfl_report_end(symbols->dwfl, NULL, NULL);
	return 0;
}

static int load_symbols(struct symbolizer *symbolizer, struct module *module,
			struct module_symbols *symbols)
{
	_cleanup_free_ char *path = NULL;

	if (module->jit_pid)
		return jit_names_init(&symbols->jit, module->jit_pid, symbolizer->modules->symfs);
	_cleanup_close_ int fd = open_file(symbolizer, module, &path);
	if (fd < 0)
		return 0;
	return report_file(module, symbolizer->debuginfo, path, &fd, symbols);
}

/* Opens the debug file, too, and expands its sections, which takes most of the time. */
static int read_table(struct module_symbols *symbols)
{
	int err = 0;

	if (symbols->module && !symbols->table_read)
		err = symbol_table_init(&symbols->table, symbols->module);
	symbols->table_read = !err;
	return err;
}

/* The slot of @module's symbols. NULL: out of memory. */
static struct module_symbols **slot_of(struct symbolizer *symbolizer, const struct module *module)
{
	if (module->id > symbolizer->nr) {
		size_t nr = symbolizer->modules->nr;
		struct module_symbols **by_id =
			reallocarray(symbolizer->by_id, nr, sizeof(struct module_symbols *));

		if (!by_id)
			return NULL;
		for (size_t i = symbolizer->nr; i < nr; i++)
			by_id[i] = NULL;
		symbolizer->by_id = by_id;
		symbolizer->nr = nr;
	}
	return &symbolizer->by_id[module->id - 1];
}

/* A file that does not fit into memory is left for later. */
static void *open_expected(void *context)
{
	struct symbolizer *symbolizer = context;

	cut_file_begin();
	for (size_t i = 0; i < symbolizer->nr_expected; i++) {
		struct module_symbols *symbols = symbolizer->expected[i];
		Dwarf_Addr bias;

		if (atomic_load(&symbolizer->opened_enough))
			break;
		/* This reads the units' ranges. */
		if (read_table(symbols) == 0)
			dwfl_module_addrdie(symbols->module, 0, &bias);
	}
	cut_file_end();
	return NULL;
}

/* The thread blocks all signals that are not its own: none is meant for it. */
void symbolizer_open_expected(struct symbolizer *symbolizer)
{
	sigset_t all, before;

	sigfillset(&all);
	sigdelset(&all, SIGBUS);
	if (symbolizer->is_opening || pthread_sigmask(SIG_SETMASK, &all, &before))
		return;
	symbolizer->is_opening =
		pthread_create(&symbolizer->opener, NULL, open_expected, symbolizer) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static int add_expected(struct symbolizer *symbolizer, struct module_symbols *symbols)
{
	struct module_symbols **expected = reallocarray(
		symbolizer->expected, symbolizer->nr_expected + 1, sizeof(struct module_symbols *));

	if (!expected)
		return -ENOMEM;
	symbolizer->expected = expected;
	expected[symbolizer->nr_expected++] = symbols;
	return 0;
}

int symbolizer_expect(struct symbolizer *symbolizer, struct module *module)
{
	struct module_symbols **slot, *symbols;
	uint64_t bytes;
	int err;

	/* Servers may take minutes, for names that may not be needed. */
	if (symbolizer->debuginfo->server || symbolizer->is_opening ||
	    !module_is_at_its_path(symbolizer->modules, module))
		return 0;
	bytes = symbolizer->expected_bytes + (uint64_t)module->file_stat.st_size;
	if (bytes > MAX_EXPECTED_BYTES || symbolizer->nr_expected == MAX_EXPECTED)
		return 0;
	slot = slot_of(symbolizer, module);
	if (!slot)
		return -ENOMEM;
	if (*slot)
		return 0;
	_cleanup_close_ int fd = module_open_file(symbolizer->modules, module);
	if (fd < 0)
		return 0;
	symbols = calloc(1, sizeof(*symbols));
	if (!symbols)
		return -ENOMEM;
	err = report_file(module, symbolizer->debuginfo, module->file_path, &fd, symbols);
	if (!err && symbols->module)
		err = add_expected(symbolizer, symbols);
	if (err) {
		module_symbols_destroy(symbols);
		return err;
	}
	*slot = symbols; /* without names, if libdwfl rejected its file */
	symbolizer->expected_bytes = bytes;
	return 0;
}

static int get_symbols(struct symbolizer *symbolizer, struct module *module,
		       struct module_symbols **ret)
{
	struct module_symbols **slot;
	int err;

	end_opening(symbolizer);
	slot = slot_of(symbolizer, module);
	if (!slot)
		return -ENOMEM;
	if (!*slot) {
		struct module_symbols *symbols = calloc(1, sizeof(*symbols));

		err = symbols ? load_symbols(symbolizer, module, symbols) : -ENOMEM;
		if (err) {
			module_symbols_destroy(symbols);
			return err;
		}
		*slot = symbols;
	}
	*ret = *slot;
	return read_table(*slot);
}

/* Finds the compilation unit that holds @vaddr. *@ret is NULL if none is known. */
static int find_unit(struct module_symbols *symbols, uint64_t vaddr, Dwarf_Die **ret,
		     Dwarf_Addr *ret_bias)
{
	const struct unit_range *range;

	*ret = dwfl_module_addrdie(symbols->module, vaddr, ret_bias);
	/*
	 * libdwfl has one range around all parts of a unit, which may enclose another unit (_start,
	 * between main and the rest).
	 */
	if (*ret && dwarf_haspc(*ret, vaddr - *ret_bias) != 0)
		return 0;
	*ret = NULL;
	if (!symbols->units_read) {
		int err = unit_ranges_init(&symbols->units, symbols->module);

		if (err)
			return err;
		symbols->units_read = true;
	}
	range = unit_ranges_find(&symbols->units, vaddr);
	if (range) {
		*ret = range->unit;
		*ret_bias = range->bias;
	}
	return 0;
}

/* Copies the name, which may be in the mapped file. Returns 0 or -ENOMEM. */
static int set_file(struct position_function *function, const char *file)
{
	function->file = file ? strndup(file, PATH_MAX) : NULL;
	return file && !function->file ? -ENOMEM : 0;
}

/* Finds the line of the instruction, which belongs to the innermost function. */
static int find_line(Dwarf_Die *unit, uint64_t pc, struct position_function *function)
{
	Dwarf_Line *line = dwarf_getsrc_die(unit, pc);

	/* Compilers give line 0 to code of no line. */
	if (!line || dwarf_lineno(line, &function->line) || function->line <= 0)
		return 0;
	return set_file(function, dwarf_linesrc(line, NULL, NULL));
}

/* Makes the demangled name. Returns 0 or -ENOMEM. *@ret is NULL if @name is. */
static int make_name(const char *name, char **ret)
{
	*ret = NULL;
	if (!name)
		return 0;
	*ret = demangle(name);
	if (!*ret)
		*ret = strndup(name, DEMANGLE_MAX_RESULT);
	return *ret ? 0 : -ENOMEM;
}

/*
 * Makes a position of @stack's functions in reverse order. The line of each function's call is in
 * the next function.
 */
static struct position *make_position(uint64_t vaddr, const struct inline_stack *stack)
{
	size_t nr = stack->nr ? stack->nr : 1;
	struct position *position =
		calloc(1, sizeof(*position) + nr * sizeof(position->functions[0]));

	if (!position)
		return NULL;
	position->vaddr = vaddr;
	position->nr = nr;
	for (size_t i = 0; i < stack->nr; i++) {
		const struct inline_function *inner = &stack->functions[nr - 1 - i];

		position->functions[i].start = inner->start;
		if (i + 1 < nr)
			position->functions[i + 1].line = inner->call_line;
		if (make_name(inner->name, &position->functions[i].name) ||
		    (i + 1 < nr && set_file(&position->functions[i + 1], inner->call_file))) {
			position_destroy(position);
			return NULL;
		}
	}
	return position;
}

static struct position *create_position(struct module_symbols *symbols, uint64_t vaddr)
{
	struct inline_stack stack;
	struct position *position;
	Dwarf_Addr bias = 0;
	Dwarf_Die *unit;

	stack.nr = 0;
	if (find_unit(symbols, vaddr, &unit, &bias) ||
	    (unit && inline_calls_find(&symbols->inline_calls, unit, bias, vaddr, &stack)))
		return NULL;
	position = make_position(vaddr, &stack);
	if (!position)
		return NULL;
	position->symbol = symbol_table_find(&symbols->table, vaddr);
	/* For padding between functions the line table returns the line of the preceding code. */
	if (unit && (position->symbol || stack.nr) &&
	    find_line(unit, vaddr - bias, &position->functions[0])) {
		position_destroy(position);
		return NULL;
	}
	return position;
}

static int get_position(struct module_symbols *symbols, uint64_t vaddr, struct position **ret)
{
	unsigned int hash = hash_number(vaddr, hash_seed());
	struct position *position;

	HASH_FIND_BYHASHVALUE(hh, symbols->positions, &vaddr, sizeof(vaddr), hash, position);
	if (!position) {
		position = create_position(symbols, vaddr);
		if (!position)
			return -ENOMEM;
		HASH_ADD_BYHASHVALUE(hh, symbols->positions, vaddr, sizeof(position->vaddr), hash,
				     position);
		if (!hash_added(position)) {
			position_destroy(position);
			return -ENOMEM;
		}
	}
	*ret = position;
	return 0;
}

/*
 * Names the outermost function by its symbol, as probes, debuggers and the linker do. A file
 * without symbols may still have debug information.
 */
static int name_outermost(const struct position *position, struct stack_frame *frame)
{
	const struct position_function *function = &position->functions[position->nr - 1];

	if (position->symbol) {
		frame->function = symbol_name(position->symbol);
		frame->function_offset = frame->module_offset - position->symbol->start;
		return frame->function ? 0 : -ENOMEM;
	}
	frame->function = function->name;
	frame->function_offset = frame->module_offset - function->start;
	return 0;
}

static int name_position(const struct position *position, struct stack_frame *frames,
			 size_t *ret_nr)
{
	const struct stack_frame common = frames[0];
	size_t nr = 0;

	for (size_t i = 0; i < position->nr; i++) {
		const struct position_function *function = &position->functions[i];
		struct stack_frame *frame = &frames[nr];

		*frame = common;
		frame->file = function->file;
		frame->line = function->file ? function->line : 0;
		frame->inlined = i + 1 < position->nr;
		if (!frame->inlined) {
			int err = name_outermost(position, frame);

			if (err)
				return err;
		} else if (function->name) {
			frame->function = function->name;
			frame->function_offset = frame->module_offset - function->start;
		} else {
			continue; /* nothing is known of it */
		}
		nr++;
	}
	*ret_nr = nr;
	return 0;
}

/* Names generated code. Without a name, not even the module is known, and the frame stays empty. */
static void name_jit(const struct jit_names *names, uint64_t address, bool is_call,
		     struct stack_frame *frame)
{
	const struct jit_piece *piece = jit_names_find(names, address - is_call);

	if (!piece)
		return;
	frame->module = names->path;
	frame->module_offset = address;
	frame->is_generated = true;
	frame->function = piece->name;
	frame->function_offset = address - piece->start;
}

int symbolizer_name(struct symbolizer *symbolizer, struct module *module, uint64_t file_offset,
		    bool is_call, struct stack_frame *frames, size_t *ret_nr)
{
	struct module_symbols *symbols = NULL;
	struct position *position;
	uint64_t vaddr;

	int err = get_symbols(symbolizer, module, &symbols);
	if (err)
		return err;

	*ret_nr = 1;
	if (module->jit_pid) {
		frames[0] = (struct stack_frame){0};
		name_jit(&symbols->jit, file_offset, is_call, &frames[0]);
		return 0;
	}
	frames[0] = (struct stack_frame){.module = module->path, .module_offset = file_offset};
	if (!module_vaddr(module, file_offset - is_call, &vaddr))
		return 0;
	frames[0].module_offset = vaddr + is_call;
	if (!symbols->module)
		return 0;
	err = get_position(symbols, vaddr, &position);
	return err ? err : name_position(position, frames, ret_nr);
}
