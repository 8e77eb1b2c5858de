/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The argument of --pair or --ref: which functions give a resource and which take it back.
 *
 *   PAIR      = [KIND "="] CALL { "|" CALL } " / " CALL { "|" CALL }
 *   CALL      = FUNCTION [":" HANDLE { " " ATTRIBUTE }]
 *   FUNCTION  = SYMBOL | FILE "+" OFFSET | SOURCE ":" LINE
 *   HANDLE    = "ret" | "arg" N | "*arg" N         N = 1 to 6
 *   ATTRIBUTE = "size=arg" N | "fail=" V | "fail!=" V | "fail<" V | "fail>" V
 *
 * In "fopen|fdopen:ret / fclose:arg1", a call without a handle has that of the next one. Calls
 * before the slash give a resource, or add a reference; those after it take it back, or drop one.
 * docs/resources.md explains it.
 */
#ifndef LEAKTOOLS_PROBES_PAIR_SPEC_H
#define LEAKTOOLS_PROBES_PAIR_SPEC_H

#include "common/schema/resource_schema.h"

#define PAIR_MAX_CALLS 64
#define PAIR_MAX_ARGS  6 /* in registers */
#define PAIR_MAX_TEXT  4096
#define PAIR_WHY_MAX   192

/* How a function is given. */
enum pair_naming {
	PAIR_BY_SYMBOL,
	PAIR_BY_OFFSET, /* in the file @name */
	PAIR_BY_LINE,	/* of the source @name: the function that holds it */
};

struct pair_call {
	enum pair_naming naming;
	char *name; /* the symbol, the file or the source */
	uint64_t number;
	enum resource_role role;
	enum resource_place place;
	bool is_pointed_to; /* the argument points to the handle, which is known at the entry */
	int handle_arg;	    /* from 1; 0: the handle is returned */
	int size_arg;	    /* from 1; 0: none */
	enum resource_failure failure;
	int64_t failure_value;
};

struct pair_spec {
	char kind[RESOURCE_KIND_MAX + 1];
	bool counts_refs;
	struct pair_call calls[PAIR_MAX_CALLS];
	size_t nr;
};

/*
 * Parses @text, the argument of --ref if @counts_refs, else of --pair. Returns 0, -ENOMEM, or
 * -EINVAL with the reason, for the user, in @why. Release with pair_spec_deinit() in either case.
 */
int pair_spec_parse(const char *text, bool counts_refs, struct pair_spec *ret,
		    char why[static PAIR_WHY_MAX]);
void pair_spec_deinit(struct pair_spec *spec);

#endif
