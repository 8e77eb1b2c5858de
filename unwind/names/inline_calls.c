/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/names/inline_calls.h"

#include "common/partition_point.h"

#include <dwarf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

/*
 * Bounds on what a damaged file can cost: entries may refer back to themselves (DW_AT_sibling).
 * libdw takes about 100 ns per entry.
 */
#define MAX_ENTRIES	   (1u << 25) /* of a module, all lists together */
#define MAX_LOOKUP_ENTRIES (1u << 17) /* of one address */
#define MAX_DEPTH	   128

/* A range of a function's code, in the DWARF's addresses. */
struct function_range {
	uint64_t start, end; /* [start, end) */
	Dwarf_Die die;
};

struct unit_functions {
	const void *unit;	       /* Dwarf_Die.addr */
	struct function_range *ranges; /* by @start */
	size_t nr, capacity;
	bool has_scopes; /* functions lie in namespaces and classes */
	UT_hash_handle hh;
};

/* One lookup. */
struct search {
	uint64_t pc; /* in the DWARF's addresses */
	uint64_t bias;
	Dwarf_Die *unit;
	unsigned nr_entries;
	struct inline_stack *stack;
	struct scope_names *scope_names;
};

static void unit_functions_destroy(struct unit_functions *unit)
{
	if (!unit)
		return;
	free(unit->ranges);
	free(unit);
}

void inline_calls_deinit(struct inline_calls *calls)
{
	struct unit_functions *unit, *next;

	HASH_ITER (hh, calls->units, unit, next) {
		HASH_DELETE(hh, calls->units, unit);
		unit_functions_destroy(unit);
	}
	scope_names_deinit(&calls->scope_names);
}

static int add_range(struct unit_functions *unit, const struct function_range *range)
{
	if (unit->nr == unit->capacity) {
		size_t capacity = unit->capacity ? 2 * unit->capacity : 64;
		struct function_range *larger =
			reallocarray(unit->ranges, capacity, sizeof(*larger));

		if (!larger)
			return -ENOMEM;
		unit->ranges = larger;
		unit->capacity = capacity;
	}
	unit->ranges[unit->nr++] = *range;
	return 0;
}

/* Adds the ranges of a function. Those that the linker dropped start at 0 or are empty. */
static int add_function(struct inline_calls *calls, struct unit_functions *unit, Dwarf_Die *die)
{
	struct function_range range = {.die = *die};
	Dwarf_Addr base;
	ptrdiff_t offset = 0;
	int err = 0;

	while (!err && calls->nr_entries++ < MAX_ENTRIES &&
	       (offset = dwarf_ranges(die, offset, &base, &range.start, &range.end)) > 0)
		if (range.start && range.start < range.end)
			err = add_range(unit, &range);
	return err;
}

/* True if an entry of this tag may define functions. */
static bool may_hold_functions(int tag)
{
	switch (tag) {
	case DW_TAG_namespace:
	case DW_TAG_module:
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
	case DW_TAG_union_type:
	case DW_TAG_subprogram: /* nested functions of GNU C, methods of local classes */
	case DW_TAG_lexical_block:
		return true;
	default:
		return false;
	}
}

static int list_functions(struct inline_calls *calls, struct unit_functions *unit,
			  Dwarf_Die *parent, unsigned depth)
{
	Dwarf_Die child;
	int err = 0;

	if (depth > MAX_DEPTH || dwarf_child(parent, &child) != 0)
		return 0;
	do {
		int tag = dwarf_tag(&child);

		if (calls->nr_entries++ >= MAX_ENTRIES)
			break;
		if (tag == DW_TAG_subprogram)
			err = add_function(calls, unit, &child);
		if (!err && unit->has_scopes && may_hold_functions(tag))
			err = scope_names_note(&calls->scope_names, &child, parent);
		if (!err && may_hold_functions(tag) && dwarf_haschildren(&child) == 1)
			err = list_functions(calls, unit, &child, depth + 1);
	} while (!err && dwarf_siblingof(&child, &child) == 0);
	return err;
}

static int compare_ranges(const void *a, const void *b)
{
	const struct function_range *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

/* True if the unit's language has scopes: in C all functions are global. */
static bool has_scopes(Dwarf_Die *unit)
{
	switch (dwarf_srclang(unit)) {
	case DW_LANG_C:
	case DW_LANG_C89:
	case DW_LANG_C99:
	case DW_LANG_C11:
	case DW_LANG_Mips_Assembler:
		return false;
	default:
		return true;
	}
}

static int get_unit(struct inline_calls *calls, Dwarf_Die *die, struct unit_functions **ret)
{
	struct unit_functions *unit;
	int err;

	HASH_FIND_PTR(calls->units, &die->addr, unit);
	if (!unit) {
		unit = calloc(1, sizeof(*unit));
		if (!unit)
			return -ENOMEM;
		unit->unit = die->addr;
		unit->has_scopes = has_scopes(die);
		err = list_functions(calls, unit, die, 0);
		if (!err) {
			HASH_ADD_PTR(calls->units, unit, unit);
			err = hash_added(unit) ? 0 : -ENOMEM;
		}
		if (err) {
			unit_functions_destroy(unit);
			return err;
		}
		if (unit->nr)
			qsort(unit->ranges, unit->nr, sizeof(*unit->ranges), compare_ranges);
	}
	*ret = unit;
	return 0;
}

/* The function range that holds @pc, or NULL. Ranges hardly ever overlap. */
static const struct function_range *find_function(const struct unit_functions *unit, uint64_t pc)
{
	size_t nr = partition_point(unit->nr, i, unit->ranges[i].start <= pc);

	if (!nr || pc >= unit->ranges[nr - 1].end)
		return NULL;
	return &unit->ranges[nr - 1];
}

/* The linkage name, or else the name in the source. */
static const char *function_name(struct search *search, Dwarf_Die *die)
{
	static const unsigned int names[] = {DW_AT_linkage_name, DW_AT_MIPS_linkage_name};
	Dwarf_Attribute attribute;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *name =
			dwarf_formstring(dwarf_attr_integrate(die, names[i], &attribute));

		if (name && *name)
			return name;
	}
	return scope_names_find(search->scope_names, die);
}

static bool get_number(Dwarf_Die *die, unsigned int name, Dwarf_Word *ret)
{
	Dwarf_Attribute attribute;

	return dwarf_formudata(dwarf_attr(die, name, &attribute), ret) == 0;
}

/* Reads where an inlined function was called. */
static void read_call(Dwarf_Die *unit, Dwarf_Die *die, struct inline_function *function)
{
	Dwarf_Word file, line;
	Dwarf_Files *files;
	size_t nr_files;

	if (!get_number(die, DW_AT_call_file, &file) || !get_number(die, DW_AT_call_line, &line) ||
	    line == 0 || line > INT32_MAX || dwarf_getsrcfiles(unit, &files, &nr_files) ||
	    file >= nr_files)
		return;
	function->call_file = dwarf_filesrc(files, file, NULL, NULL);
	function->call_line = function->call_file ? (int)line : 0;
}

/* True if the entry has addresses of code. */
static bool has_addresses(Dwarf_Die *die)
{
	return dwarf_hasattr(die, DW_AT_low_pc) || dwarf_hasattr(die, DW_AT_ranges);
}

/* True if a range of the entry's code holds the address. */
static bool holds(struct search *search, Dwarf_Die *die, uint64_t *ret_start)
{
	Dwarf_Addr base, start, end;
	ptrdiff_t offset = 0;

	while (search->nr_entries++ < MAX_LOOKUP_ENTRIES &&
	       (offset = dwarf_ranges(die, offset, &base, &start, &end)) > 0)
		if (search->pc >= start && search->pc < end) {
			*ret_start = start;
			return true;
		}
	return false;
}

/* Adds an inlined function. Returns false if there is no room for more. */
static bool push(struct search *search, Dwarf_Die *die, uint64_t start)
{
	struct inline_stack *stack = search->stack;
	struct inline_function *function = &stack->functions[stack->nr];

	if (stack->nr == 1 + INLINE_CALLS_MAX)
		return false;
	*function = (struct inline_function){
		.name = function_name(search, die),
		.start = start + search->bias,
	};
	read_call(search->unit, die, function);
	stack->nr++;
	return true;
}

/* Finds the entry below @parent, through blocks, that holds the address. */
static bool find_inlined(struct search *search, Dwarf_Die *parent, unsigned depth, Dwarf_Die *ret,
			 uint64_t *ret_start)
{
	Dwarf_Die child;

	if (depth > MAX_DEPTH || dwarf_child(parent, &child) != 0)
		return false;
	do {
		uint64_t start;

		if (search->nr_entries++ >= MAX_LOOKUP_ENTRIES)
			return false;
		switch (dwarf_tag(&child)) {
		case DW_TAG_inlined_subroutine:
			if (!holds(search, &child, ret_start))
				break;
			*ret = child;
			return true;
		case DW_TAG_lexical_block:
		case DW_TAG_try_block:
		case DW_TAG_catch_block:
			if ((!has_addresses(&child) || holds(search, &child, &start)) &&
			    find_inlined(search, &child, depth + 1, ret, ret_start))
				return true;
			break;
		default:
			break;
		}
	} while (dwarf_siblingof(&child, &child) == 0);
	return false;
}

int inline_calls_find(struct inline_calls *calls, Dwarf_Die *unit, uint64_t bias, uint64_t address,
		      struct inline_stack *ret)
{
	struct search search = {
		.pc = address - bias,
		.bias = bias,
		.unit = unit,
		.stack = ret,
		.scope_names = &calls->scope_names,
	};
	const struct function_range *function;
	struct unit_functions *functions;
	int err = get_unit(calls, unit, &functions);

	ret->nr = 0;
	if (err)
		return err;
	function = find_function(functions, search.pc);
	if (!function)
		return 0;

	Dwarf_Die die = function->die, inlined;
	uint64_t start = function->start;
	ret->functions[ret->nr++] = (struct inline_function){
		.name = function_name(&search, &die),
		.start = start + bias,
	};
	while (find_inlined(&search, &die, 0, &inlined, &start) && push(&search, &inlined, start))
		die = inlined;
	return 0;
}
