/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/names/scope_names.h"

#include "common/scope.h"

#include <dwarf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DEPTH  32	/* scopes; outer ones are left out */
#define MAX_LENGTH 4096 /* of a qualified name; a longer one is shown bare */

struct scope_name {
	const void *die; /* Dwarf_Die.addr */
	char *name;
	UT_hash_handle hh;
};

void scope_names_deinit(struct scope_names *names)
{
	struct scope_name *name, *next;

	HASH_ITER (hh, names->names, name, next) {
		HASH_DELETE(hh, names->names, name);
		free(name->name);
		free(name);
	}
	free(names->parents);
}

int scope_names_note(struct scope_names *names, Dwarf_Die *die, Dwarf_Die *parent)
{
	if (names->nr == SCOPE_NAMES_MAX)
		return 0;
	if (names->nr == names->capacity) {
		size_t capacity = names->capacity ? 2 * names->capacity : 1024;
		struct scope_parent *larger =
			reallocarray(names->parents, capacity, sizeof(*larger));

		if (!larger)
			return -ENOMEM;
		names->parents = larger;
		names->capacity = capacity;
	}
	names->dwarf = dwarf_cu_getdwarf(die->cu);
	names->parents[names->nr++] = (struct scope_parent){
		.die = dwarf_dieoffset(die),
		.parent = dwarf_dieoffset(parent),
	};
	return 0;
}

static int compare_parents(const void *a, const void *b)
{
	const struct scope_parent *x = a, *y = b;

	return (x->die > y->die) - (x->die < y->die);
}

/* Moves @die to its parent. Returns false if that is not known. */
static bool go_to_parent(struct scope_names *names, Dwarf_Die *die)
{
	struct scope_parent key = {.die = dwarf_dieoffset(die)};
	const struct scope_parent *found;
	Dwarf *dwarf = dwarf_cu_getdwarf(die->cu);
	Dwarf_Die same;

	/* An entry of another section or of a shared file may have the same offset. */
	if (dwarf != names->dwarf || !dwarf_offdie(dwarf, key.die, &same) || same.addr != die->addr)
		return false;
	if (names->nr != names->nr_sorted) {
		qsort(names->parents, names->nr, sizeof(key), compare_parents);
		names->nr_sorted = names->nr;
	}
	if (!names->nr)
		return false;
	found = bsearch(&key, names->parents, names->nr, sizeof(key), compare_parents);
	return found && dwarf_offdie(dwarf, found->parent, die);
}

/* Moves @die to its declaration, which stands in its scope. */
static void go_to_declaration(Dwarf_Die *die)
{
	static const unsigned int links[] = {DW_AT_abstract_origin, DW_AT_specification};

	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
		Dwarf_Attribute attribute;
		Dwarf_Die target;

		if (dwarf_attr(die, links[i], &attribute) && dwarf_formref_die(&attribute, &target))
			*die = target;
	}
}

static const char unnamed_class[] = "(anonymous class)";

/* The scope's name before "::"; NULL: none. */
static const char *scope_word(Dwarf_Die *die)
{
	const char *name = dwarf_diename(die);

	switch (dwarf_tag(die)) {
	case DW_TAG_namespace:
		return name ? name : "(anonymous namespace)";
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
	case DW_TAG_union_type:
		return name ? name : unnamed_class;
	case DW_TAG_module:
	case DW_TAG_subprogram:
		return name;
	default:
		return NULL;
	}
}

/* Makes the qualified name. NULL: there is none, or memory ran out. */
static char *make_name(struct scope_names *names, Dwarf_Die *function)
{
	const char *words[MAX_DEPTH], *bare = dwarf_diename(function);
	_cleanup_free_ char *name = NULL;
	Dwarf_Die die = *function;
	size_t nr = 0, len;

	if (!bare)
		return NULL;
	go_to_declaration(&die);
	for (size_t depth = 0; depth < MAX_DEPTH && go_to_parent(names, &die); depth++) {
		const char *word;

		/* A scope defined apart from its declaration lies where the declaration does. */
		go_to_declaration(&die);
		word = scope_word(&die);
		if (word == unnamed_class && nr == 0 && strcmp(bare, "operator()") == 0)
			word = "{lambda}";
		if (word)
			words[nr++] = word;
	}
	FILE *out = open_memstream(&name, &len);
	if (!out)
		return NULL;
	for (size_t i = nr; i--;)
		fprintf(out, "%s::", words[i]);
	fputs(bare, out);
	if (fclose(out) != 0)
		return NULL;
	return len > MAX_LENGTH ? strndup(bare, MAX_LENGTH) : steal_ptr(name);
}

const char *scope_names_find(struct scope_names *names, Dwarf_Die *die)
{
	struct scope_name *name;

	HASH_FIND_PTR(names->names, &die->addr, name);
	if (name)
		return name->name;
	name = calloc(1, sizeof(*name));
	if (!name)
		return NULL;
	name->die = die->addr;
	name->name = make_name(names, die);
	HASH_ADD_PTR(names->names, die, name);
	if (!hash_added(name)) {
		free(name->name);
		free(name);
		return NULL;
	}
	return name->name;
}
