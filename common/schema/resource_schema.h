/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Resources that are no memory: what one function gives and another takes (FILEs, descriptors,
 * objects with reference counts, blocks of a program's own pools). The user names the functions
 * (probes/resources/pair_spec.h), so they are rows of no table. Their events describe themselves
 * instead: the name of an event says the kind of resource, what the call does and the function, its
 * fields say the rest, and perf.data needs nothing beside it. docs/resources.md has the whole of
 * it.
 *
 *   KIND__ROLE__FUNCTION       a call that is known at its entry
 *   KIND__ROLE_call__FUNCTION  the entry of a call that is known at its return
 *   KIND__ROLE_ret__FUNCTION   its return
 *   KIND__ROLE_exit__FUNCTION  its return, at an instruction that returns (PROBE_EXIT)
 */
#ifndef LEAKTOOLS_COMMON_RESOURCE_SCHEMA_H
#define LEAKTOOLS_COMMON_RESOURCE_SCHEMA_H

#include "common/schema/probe_schema.h"

#include <stdint.h>

#define RESOURCE_KIND_MAX     16 /* characters of a kind's name */
#define RESOURCE_EVENT_MAX    63 /* of an event's: MAX_EVENT_NAME_LEN in kernel/trace/trace.h */
#define RESOURCE_MAX_KINDS    64
#define RESOURCE_MAPPINGS     RESOURCE_MAX_KINDS /* a number: common/schema/syscall_schema.h */
#define RESOURCE_DESCRIPTORS  (RESOURCE_MAX_KINDS - 1)
#define RESOURCE_NAMED_KINDS  (RESOURCE_DESCRIPTORS - 1) /* by the user */
#define RESOURCE_MAX_CALLS    1024
#define RESOURCE_FIELD_MAX    31 /* characters of a field's: MAX_ARG_NAME_LEN, trace_probe.h */

#define RESOURCE_FIELD_HANDLE "handle"	  /* entry: the handle; return: it, where it is returned */
#define RESOURCE_FIELD_AT     "handle_at" /* entry: where the call will store it */
#define RESOURCE_FIELD_STORED "stored"	  /* return: what was stored there */
#define RESOURCE_FIELD_SIZE   "size"	  /* entry: in bytes */

/* What a program says itself, of its own pools (<leaktools/leak_probes.h>). */
#define RESOURCE_POOL_GIVES "leak_alloc"
#define RESOURCE_POOL_TAKES "leak_free"

/* What a successful call does. */
enum resource_role {
	RESOURCE_GIVE,	/* one more is held */
	RESOURCE_TAKE,	/* it is held no more */
	RESOURCE_NEW,	/* an object with one reference */
	RESOURCE_REF,	/* one more reference to it */
	RESOURCE_UNREF, /* one less */
	RESOURCE_NR_ROLES,
};

/* Which of a call's events it is. */
enum resource_stage {
	RESOURCE_WHOLE, /* the entry, after which the call cannot fail */
	RESOURCE_ENTRY,
	RESOURCE_RETURN,
	RESOURCE_EXIT, /* the return, of a PROBE_EXIT */
};

/* Where the handle is. */
enum resource_place {
	RESOURCE_IN_ARGUMENT, /* known at the entry */
	RESOURCE_RETURNED,
	RESOURCE_STORED, /* where an argument points to, at the return */
};

/* The return value that says that a call failed, compared as an int where it is one. */
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
	bool names_one; /* its name says what one of them is */
};

/* A function, as the events tell of it. */
struct resource_call {
	struct probe_schema schema; /* first: resource_call_of() */
	const struct resource_kind *kind;
	enum resource_role role;
	bool has_return; /* its events are RESOURCE_ENTRY and RESOURCE_RETURN */
	enum resource_place place;
	enum resource_failure failure;
	int64_t failure_value;
	char function[RESOURCE_EVENT_MAX + 1];
};

/* The call whose schema it is, or NULL if it is one of memory. */
static inline const struct resource_call *resource_call_of(const struct probe_schema *schema)
{
	return schema && probe_schema_is_resource(schema) ? (const struct resource_call *)schema
							  : NULL;
}

/* The calls that are known, each once; they stay where they are until the end. */
struct resource_schemas {
	struct resource_kind *kinds[RESOURCE_MAX_KINDS];
	size_t nr_kinds;
	struct resource_call **calls;
	size_t nr_calls;
};

void resource_schemas_deinit(struct resource_schemas *schemas);

/* An event's name, taken apart. */
struct resource_event {
	char kind[RESOURCE_KIND_MAX + 1];
	enum resource_role role;
	enum resource_stage stage;
	char function[RESOURCE_EVENT_MAX + 1];
};

/* True if @name is a kind's: a letter, then letters, digits and single '_' not at the end. */
bool resource_kind_is_valid(const char *name, size_t len);

/* Returns 0, or -ENOENT if @name is none of a resource's. */
int resource_event_parse(const char *name, struct resource_event *ret);

/*
 * The name. What of the function does not fit, or not into a name, is replaced: by '_',
 * respectively by a hash, so that functions with different names have different events.
 */
void resource_event_format(const struct resource_event *event,
			   char buffer[static RESOURCE_EVENT_MAX + 1]);

/* "handle_fail_lt_0": the field of a return value, and what of it means failure. */
void resource_return_field(const struct resource_call *call,
			   char buffer[static RESOURCE_FIELD_MAX + 1]);

/*
 * Takes from a field's name where the handle is and what means failure. Returns false if @name is
 * no return value's.
 */
bool resource_return_field_parse(const char *name, struct resource_call *call);

/*
 * The call that @event is one of, made known if it is not. The caller completes it (place and
 * failure). Returns 0, -ENOMEM, or -E2BIG where there are too many.
 */
int resource_schemas_add(struct resource_schemas *schemas, const struct resource_event *event,
			 struct resource_call **ret);

/* Whether a call of that row that returned @ret has failed; @handle is what it is about. */
bool resource_call_failed(const struct resource_call *call, uint64_t ret, uint64_t handle);

#endif
