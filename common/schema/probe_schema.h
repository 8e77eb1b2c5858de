/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The one table that says what each probed function does to the heap. leakprobe registers probes
 * from it, leakrec records them, the parser decodes by it: a new allocator is one row. Which ELF
 * symbols stand for a row is in probe_symbols.h, how its events are named in probe_events.h.
 */
#ifndef LEAKTOOLS_COMMON_PROBE_SCHEMA_H
#define LEAKTOOLS_COMMON_PROBE_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>

#define PROBE_MAX_ARGS	 3
#define PROBE_TEXT_BYTES 64 /* of a mark, with its end */

/* What a call does to the heap when it succeeds. */
enum heap_effect {
	HEAP_ALLOC,	   /* returns a new block */
	HEAP_ALLOC_TO_PTR, /* returns 0 and stores the new block in *args[block_arg] */
	HEAP_REALLOC,	   /* releases args[block_arg], returns a new block */
	HEAP_RELEASE,	   /* releases args[block_arg]; has no return probe */
	HEAP_MARK,	   /* nothing: it is a moment, which args[0], a string, names */
	/* Nothing: the row is that of a struct resource_call (resource_schema.h). */
	RESOURCE_AT_ENTRY, /* has no return probe */
	RESOURCE_AT_RETURN,
};

/*
 * Which functions belong together: a block of one family must be released by one of the same. Where
 * FAMILY_ANY is involved nothing can be said.
 */
enum heap_family {
	FAMILY_ANY,
	FAMILY_MALLOC,
	FAMILY_NEW,
	FAMILY_NEW_ARRAY,
};

/* Where in a function an event was taken. */
enum probe_point {
	PROBE_ENTRY,  /* the arguments */
	PROBE_RETURN, /* the return value */
	PROBE_STORE,  /* HEAP_ALLOC_TO_PTR: where *args[block_arg] is written */
	PROBE_CALL,   /* entry and return in one event, recorded at the return */
	PROBE_EXIT,   /* the return value, at an instruction that returns (function_exits.h) */
};

/*
 * A row. An argument's index is its position in the function's prototype. Sizes are in bytes; where
 * the block's size is a product (calloc), @size_arg and @count_arg are its factors.
 */
struct probe_schema {
	const char *function; /* ELF symbol, as a rule, and the event's name */
	enum heap_effect effect;
	int nr_args;
	const char
		*arg_names[PROBE_MAX_ARGS]; /* the event's fields; glibc's own names, so perf's */
	int size_arg;			    /* -1: none */
	int count_arg;			    /* -1: none */
	int block_arg;			    /* -1: none */
	enum heap_family family;
};

/* The table, of *@ret_nr rows; static. */
const struct probe_schema *probe_schema_table(size_t *ret_nr);

/*
 * The row of LEAK_MARK() (<leaktools/leak_probes.h>), which is no function and in no table: only
 * its event's name is told by it. In the event, a string (__data_loc) is PROBE_FIELD_TEXT.
 */
extern const struct probe_schema probe_schema_mark;

/* The row of @function (exact name), or NULL. */
const struct probe_schema *probe_schema_find(const char *function);

/* True if calls of that row have a return probe. */
static inline bool probe_schema_has_return(const struct probe_schema *schema)
{
	return schema->effect != HEAP_RELEASE && schema->effect != HEAP_MARK &&
	       schema->effect != RESOURCE_AT_ENTRY;
}

/*
 * True if an exception may pass calls of that row, or a coroutine leave them on one stack and come
 * back on another: their return addresses are not to be replaced, as return probes do. C++'s
 * operators throw, and call a handler of the program's. The C functions cannot: C++ declares them
 * noexcept, and no thread may be cancelled in them (POSIX, 2.9.5).
 */
static inline bool probe_schema_may_throw(const struct probe_schema *schema)
{
	return schema->effect == RESOURCE_AT_RETURN ||
	       (schema->effect == HEAP_ALLOC && schema->family != FAMILY_MALLOC);
}

/* True if the row is of something else than memory. */
static inline bool probe_schema_is_resource(const struct probe_schema *schema)
{
	return schema->effect >= RESOURCE_AT_ENTRY;
}

/* True if the function takes blocks from its caller: frees them, or makes new ones of them. */
static inline bool probe_schema_releases(const struct probe_schema *schema)
{
	return schema->effect == HEAP_RELEASE || schema->effect == HEAP_REALLOC;
}

/* True for the points that are taken when the function returns: there the stack is the caller's. */
static inline bool probe_point_is_return(enum probe_point point)
{
	return point == PROBE_RETURN || point == PROBE_CALL || point == PROBE_EXIT;
}

/*
 * Names of fields that every recording of ours has, next to the schema's arguments. A PROBE_CALL
 * has the kernel's own of a return probe, __probe_func and __probe_ret_ip, which is the caller. A
 * PROBE_EXIT is no return probe: the instruction is PROBE_FIELD_FROM_ENTRY bytes behind the probe
 * of the function's entry, or before it.
 */
#define PROBE_FIELD_CALLER     "caller" /* entry, exit: the return address, in the caller */
#define PROBE_FIELD_RET	       "ret"	/* return, call, exit: the return value */
#define PROBE_FIELD_FROM_ENTRY "from_entry"
#define PROBE_FIELD_TEXT       "text"  /* of a mark: a string of less than PROBE_TEXT_BYTES */
#define PROBE_FIELD_BLOCK      "block" /* store, call of a HEAP_ALLOC_TO_PTR: the new block */

#endif
