/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What leakscan says of a block: whether the program can still get to it (docs/reachability.md).
 * The words are those of `leakscan --blocks`, of reports, and of samples leakrec:reach.
 */
#ifndef LEAKTOOLS_SCHEMA_REACH_CLASS_H
#define LEAKTOOLS_SCHEMA_REACH_CLASS_H

#include <stdbool.h>
#include <stddef.h>

enum reach_class {
	REACH_LOST,
	REACH_CYCLE,
	REACH_THROUGH, /* lost through another block */
	REACH_POSSIBLE,
	REACH_WEAK,
	REACH_HELD,
	REACH_UNKNOWN, /* no holder was found, but more cannot be said */
	/* Not of a block: a part of the heap, all of whose other blocks are held. */
	REACH_HEAP,
	/*
	 * Of an allocator whose heap leakscan does not read, only recorded blocks are known. So
	 * nothing is proven there: free memory and the allocator's own may point to a block.
	 */
	REACH_NO_HOLDER,
	/* Not of a block: a part of such a heap, all of whose other blocks something points to. */
	REACH_TRACED,
	REACH_POINTED, /* a block of such a heap; in recordings it has no sample */
	REACH_NR_CLASSES,
	REACH_NOT_SCANNED = REACH_NR_CLASSES,
	/* A scan after the recording found no such block there any more. Not in recordings. */
	REACH_GONE,
};

/* NULL: nothing was said of the block, or it is no class of blocks. */
extern const char *const reach_class_words[REACH_GONE + 1];

/* The class that @word, of @len bytes, stands for; REACH_NOT_SCANNED: none. */
enum reach_class reach_class_parse(const char *word, size_t len);

/* What reports tell apart. */
enum reach_group {
	REACH_GROUP_LOST, /* the program cannot get to it any more: lost, cycle, lost-through */
	REACH_GROUP_NO_HOLDER, /* no-holder */
	REACH_GROUP_REACHABLE, /* it can, or a pointer leads into it: held, possible */
	REACH_GROUP_POINTED,   /* pointed-to */
	REACH_GROUP_UNDECIDED, /* weak, unknown */
	REACH_GROUP_NOT_SCANNED,
	REACH_NR_PROOFS,
	REACH_GROUP_GONE = REACH_NR_PROOFS, /* only a scan after the recording says so */
	REACH_NR_GROUPS,
};

/* "proven lost", "still reachable" and so on: what people read; and what that means, NULL if the
 * word says all. */
extern const char *const reach_group_words[REACH_NR_GROUPS];
extern const char *const reach_group_meanings[REACH_NR_GROUPS];

static inline enum reach_group reach_group_of(enum reach_class class)
{
	switch (class) {
	case REACH_LOST:
	case REACH_CYCLE:
	case REACH_THROUGH:
		return REACH_GROUP_LOST;
	case REACH_HELD:
	case REACH_POSSIBLE:
		return REACH_GROUP_REACHABLE;
	case REACH_NO_HOLDER:
		return REACH_GROUP_NO_HOLDER;
	case REACH_POINTED:
		return REACH_GROUP_POINTED;
	case REACH_WEAK:
	case REACH_UNKNOWN:
		return REACH_GROUP_UNDECIDED;
	case REACH_GONE:
		return REACH_GROUP_GONE;
	default:
		return REACH_GROUP_NOT_SCANNED;
	}
}

/* True if a scan has found something that leads to the blocks: they may have a holder. */
static inline bool reach_group_has_holders(enum reach_group group)
{
	return group == REACH_GROUP_REACHABLE || group == REACH_GROUP_POINTED;
}

/* The fields of leakrec:reach, after "class". */
enum reach_value {
	REACH_ADDRESS,
	REACH_BYTES,   /* that the program may use; of a heap, all */
	REACH_STOPPED, /* when the process was stopped: CLOCK_MONOTONIC, in ns */
	/*
	 * With REACH_HELD: the number of what leads to the held, possible and pointed-to blocks
	 * that begin in these bytes, in this process; 0: it has no name. leakrec:holder names it.
	 */
	REACH_HOLDER,
	REACH_NR_VALUES,
};

#define REACH_FIELD_CLASS "class"
#define REACH_VALUE_NAMES                                                                          \
	{                                                                                          \
		"address", "bytes", "stopped", "holder"                                            \
	}

/* The fields of leakrec:holder: its number; PROBE_FIELD_TEXT is its name, of less than these bytes.
 */
#define HOLDER_FIELD_NUMBER "number"
#define HOLDER_TEXT_BYTES   128

#endif
