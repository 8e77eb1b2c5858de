/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The one table that says what each probed function does to the heap. leakprobe registers probes
 * from it, leakrec records them, the parser decodes by it: a new allocator is one row. Which ELF
 * symbols stand for a row is in probe_symbols.h, how its events are named in probe_events.h.
 */
#ifndef LEAKTOOLS_COMMON_PROBE_SCHEMA_H
#define LEAKTOOLS_COMMON_PROBE_SCHEMA_H

#include <inttypes.h>
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
	HEAP_MARK,	   /* nothing: it marks a moment; args[0] is a string with its name */
	/* Nothing. The row is part of a struct resource_call (resource_schema.h). */
	RESOURCE_AT_ENTRY, /* has no return probe */
	RESOURCE_AT_RETURN,
};

/*
 * Which functions belong together: a block must be released by a function of the family that
 * allocated it. FAMILY_ANY goes with every family.
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
	const char *function; /* the event's name; usually an ELF symbol */
	enum heap_effect effect;
	int nr_args;
	const char *arg_names[PROBE_MAX_ARGS]; /* the event's fields; glibc's names, as perf's */
	int size_arg;			       /* -1: none */
	int count_arg;			       /* -1: none */
	int block_arg;			       /* -1: none */
	enum heap_family family;
};

/* The table, of *@ret_nr rows; static. */
const struct probe_schema *probe_schema_table(size_t *ret_nr);

/*
 * The row of LEAK_MARK() (<leaktools/leak_probes.h>), which is no function and is not in the table.
 * It only gives its event a name. In the event, PROBE_FIELD_TEXT is a string (__data_loc), or in
 * tracefs, which cannot read one without waiting for its page, its address.
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
 * True if an exception may pass calls of that row, or a coroutine may leave them on one stack and
 * return on another. Return probes, which replace return addresses, must not be used then. C++'s
 * operators throw, and call a handler of the program. The C functions cannot: C++ declares them
 * noexcept, and no thread may be cancelled in them (POSIX, 2.9.5).
 */
static inline bool probe_schema_may_throw(const struct probe_schema *schema)
{
	return schema->effect == RESOURCE_AT_RETURN ||
	       (schema->effect == HEAP_ALLOC && schema->family != FAMILY_MALLOC);
}

/* True if the row is about something other than memory. */
static inline bool probe_schema_is_resource(const struct probe_schema *schema)
{
	return schema->effect >= RESOURCE_AT_ENTRY;
}

/*
 * True for the points that are recorded when the function returns: there the stack is the caller's.
 */
static inline bool probe_point_is_return(enum probe_point point)
{
	return point == PROBE_RETURN || point == PROBE_CALL || point == PROBE_EXIT;
}

/*
 * Names of the fields that our recordings have besides the schema's arguments. A PROBE_CALL has the
 * fields of the kernel's return probes: __probe_func, and __probe_ret_ip, which is the caller. A
 * PROBE_EXIT is no return probe. Its field PROBE_FIELD_FROM_ENTRY is the distance in bytes, perhaps
 * negative, from the probe of the function's entry to the instruction.
 */
#define PROBE_FIELD_CALLER     "caller" /* entry, exit: the return address, in the caller */
#define PROBE_FIELD_RET	       "ret"	/* return, call, exit: the return value */
#define PROBE_FIELD_FROM_ENTRY "from_entry"
#define PROBE_FIELD_TEXT       "text" /* of a mark: a string of less than PROBE_TEXT_BYTES */
#define PROBE_UNREAD_TEXT      "(text at 0x%" PRIx64 " not read)"
#define PROBE_FIELD_BLOCK      "block" /* store, call of a HEAP_ALLOC_TO_PTR: the new block */

#endif
