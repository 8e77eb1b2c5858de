/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Resources other than memory, which one function gives and another takes: FILEs, descriptors,
 * objects with reference counts, blocks of a program's own pools. The user names the functions
 * (probes/resources/pair_spec.h), so no table has them. Their events describe themselves instead:
 * the name of an event contains the kind of resource, what the call does and the function; the
 * fields contain the rest. perf.data needs nothing else. docs/resources.md describes all of it.
 *
 *   KIND__ROLE__FUNCTION       a call that takes effect at its entry
 *   KIND__ROLE_call__FUNCTION  the entry of a call that takes effect at its return
 *   KIND__ROLE_ret__FUNCTION   its return
 *   KIND__ROLE_exit__FUNCTION  its return, at an instruction that returns (PROBE_EXIT); ROLE_exit1,
 *                              ROLE_exit2, ... are the others
 */
#ifndef LEAKTOOLS_COMMON_RESOURCE_SCHEMA_H
#define LEAKTOOLS_COMMON_RESOURCE_SCHEMA_H

#include "common/schema/probe_schema.h"

#include <stdint.h>

#define RESOURCE_KIND_MAX 16 /* characters in the name of a kind */
#define RESOURCE_EVENT_MAX                                                                         \
	63 /* in the name of an event: MAX_EVENT_NAME_LEN, kernel/trace/trace.h, 6.1 */
#define RESOURCE_MAX_KINDS 64
#define RESOURCE_MAPPINGS                                                                          \
	RESOURCE_MAX_KINDS /* the kind's number: common/schema/syscall_schema.h                    \
			    */
#define RESOURCE_DESCRIPTORS (RESOURCE_MAX_KINDS - 1)
#define RESOURCE_NAMED_KINDS (RESOURCE_DESCRIPTORS - 1) /* that the user can name */
#define RESOURCE_MAX_CALLS   1024
#define RESOURCE_FIELD_MAX                                                                         \
	31 /* characters in the name of a field: MAX_ARG_NAME_LEN, kernel/trace/trace_probe.h */

#define RESOURCE_FIELD_HANDLE                                                                      \
	"handle" /* the handle: at the entry, or at the return if the call returns it */
#define RESOURCE_FIELD_AT     "handle_at" /* entry: where the call will store the handle */
#define RESOURCE_FIELD_STORED "stored"	  /* return: the handle that was stored there */
#define RESOURCE_FIELD_SIZE   "size"	  /* entry: in bytes */

/* The calls by which a program reports blocks of its own pools (<leaktools/leak_probes.h>). */
#define RESOURCE_POOL_GIVES "leak_alloc"
#define RESOURCE_POOL_TAKES "leak_free"

/* What a successful call does. */
enum resource_role {
	RESOURCE_GIVE,	/* one more handle is held */
	RESOURCE_TAKE,	/* the handle is no longer held */
	RESOURCE_NEW,	/* makes an object with one reference */
	RESOURCE_REF,	/* adds a reference */
	RESOURCE_UNREF, /* drops a reference */
	RESOURCE_NR_ROLES,
};

/* Which event of a call this is. */
enum resource_stage {
	RESOURCE_WHOLE, /* the entry of a call that cannot fail after it */
	RESOURCE_ENTRY,
	RESOURCE_RETURN,
	RESOURCE_EXIT, /* the return, of a PROBE_EXIT */
};

/* Where the handle is. */
enum resource_place {
	RESOURCE_IN_ARGUMENT, /* at the entry */
	RESOURCE_RETURNED,
	RESOURCE_STORED, /* at the return, where an argument points to */
};

/* Which return values mean that a call failed. An int is compared as an int. */
enum resource_failure {
	RESOURCE_FAILS_BY_NULL, /* a handle of 0 */
	RESOURCE_FAILS_EQUAL,
	RESOURCE_FAILS_UNEQUAL,
	RESOURCE_FAILS_BELOW,
	RESOURCE_FAILS_ABOVE,
	RESOURCE_NR_FAILURES,
};

struct resource_kind {
	char name[RESOURCE_KIND_MAX + 1];
	unsigned int number; /* from 1 */
	bool counts_refs;
	bool names_one; /* the kind's name also names one of them: a mapping, a descriptor */
};

/* A function, as its events describe it. */
struct resource_call {
	struct probe_schema schema; /* must be first: resource_call_of() */
	const struct resource_kind *kind;
	enum resource_role role;
	bool has_return; /* its events are RESOURCE_ENTRY and RESOURCE_RETURN */
	enum resource_place place;
	enum resource_failure failure;
	int64_t failure_value;
	char function[RESOURCE_EVENT_MAX + 1];
};

/* The call that @schema belongs to; NULL if that is a memory function's. */
static inline const struct resource_call *resource_call_of(const struct probe_schema *schema)
{
	return schema && probe_schema_is_resource(schema) ? (const struct resource_call *)schema
							  : NULL;
}

/* The known calls, each once. Their addresses do not change. */
struct resource_schemas {
	struct resource_kind *kinds[RESOURCE_MAX_KINDS];
	size_t nr_kinds;
	struct resource_call **calls;
	size_t nr_calls;
};

void resource_schemas_deinit(struct resource_schemas *schemas);

/* The parts of an event's name. */
struct resource_event {
	char kind[RESOURCE_KIND_MAX + 1];
	enum resource_role role;
	enum resource_stage stage;
	char function[RESOURCE_EVENT_MAX + 1];
	unsigned int exit_number; /* of RESOURCE_EXIT: from 0, below 100 */
};

/* True if @name can name a kind: a letter, then letters, digits and single '_' inside. */
bool resource_kind_is_valid(const char *name, size_t len);

/* Splits the name. Returns 0, or -ENOENT if @name is not the name of a resource's event. */
int resource_event_parse(const char *name, struct resource_event *ret);

/*
 * Formats the name. Characters that a name cannot have become '_'. A hash then ends the name, as it
 * does if the function's name is too long, so that different functions have different events.
 */
void resource_event_format(const struct resource_event *event,
			   char buffer[static RESOURCE_EVENT_MAX + 1]);

/* Formats the name of the return value's field, with the failures: "handle_fail_lt_0". */
void resource_return_field(const struct resource_call *call,
			   char buffer[static RESOURCE_FIELD_MAX + 1]);

/*
 * Sets @call's place and failure from the name of a field. Returns false if @name is not the name
 * of a return value's field.
 */
bool resource_return_field_parse(const char *name, struct resource_call *call);

/*
 * Finds the call of @event, or adds it; the caller then sets its place and failure. Returns 0,
 * -ENOMEM, or -E2BIG if there are too many kinds or calls.
 */
int resource_schemas_add(struct resource_schemas *schemas, const struct resource_event *event,
			 struct resource_call **ret);

/* True if a call that returned @ret, about @handle, has failed. */
bool resource_call_failed(const struct resource_call *call, uint64_t ret, uint64_t handle);

#endif
