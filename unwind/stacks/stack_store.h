/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Stacks: from callchains, or registers and dumped stack bytes, to interned ids, and from ids to
 * function, file:line and module.
 *
 * Feed it the processes' mapping events in time order; a stack is placed (each address resolved to
 * module + offset) against the mappings of its own instant, when it is interned. Names are looked
 * up only when asked for, each address once.
 *
 * Everything it is fed is hostile input: addresses, sizes and names may be anything.
 */
#ifndef LEAKTOOLS_UNWIND_STACK_STORE_H
#define LEAKTOOLS_UNWIND_STACK_STORE_H

#include "unwind/frames/stack_dump.h"
#include "unwind/modules/stack_mapping.h"
#include "unwind/names/stack_frame.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define STACK_NONE 0u /* the id of the empty stack */

struct stack_store;

/*
 * Where files are looked for: a module's at SYMFS/path, at its path, and at its path in the root of
 * the processes that mapped it; with a build-id recorded, only a file with that build-id is taken.
 */
struct stack_store_options {
	const char *symfs;     /* prefix to every module's path; NULL: none */
	const char *debug_dir; /* of separate debug files, before /usr/lib/debug; NULL: none */
	bool ask_servers;      /* for names, where DEBUGINFOD_URLS is set: may take minutes */
	bool expect_names;     /* stacks will be named: stack_store_begin_naming() is worth while */
	bool own_vdso; /* the processes run on this machine, as this one does: "[vdso]" is ours */
};

int stack_store_create(const struct stack_store_options *options, struct stack_store **ret);
void stack_store_destroy(struct stack_store *store);

/*
 * The processes' address spaces, in time order. @pid is the process (thread group). A fork whose
 * child is its parent, which is a new thread, changes nothing. A mapping that no file backs
 * ("//anon", "[heap]") only takes the place of what was there. After its exit a process's mappings
 * are kept for a while, as its last threads may outlive the first. Return 0 or -ENOMEM.
 */
int stack_store_map(struct stack_store *store, const struct stack_mapping *mapping);
int stack_store_fork(struct stack_store *store, pid_t child, pid_t parent);
void stack_store_exec(struct stack_store *store, pid_t pid); /* forgets its mappings */
void stack_store_exit(struct stack_store *store, pid_t pid);

/* Build-ids from the file's BUILD_ID feature: for modules whose mapping came without one. */
int stack_store_set_build_id(struct stack_store *store, const char *path, const uint8_t *build_id,
			     uint8_t size);

/*
 * This bit of an address in a chain, which no user address has: it is where code was interrupted,
 * by a signal for instance, and no return address, though another frame is inside it.
 */
#define STACK_INTERRUPTED (1ULL << 63)

/*
 * What the recording calls the byte at @file_offset of the file at @path (as that is mapped without
 * a build-id), @function_offset behind the beginning of @function: for where we find no name.
 * Returns 0 or -ENOMEM.
 */
int stack_store_name_place(struct stack_store *store, const char *path, uint64_t file_offset,
			   const char *function, uint64_t function_offset);

/* Whether a file, as far as is known, is mapped where a call would have to be that returns there.
 */
bool stack_store_is_code(struct stack_store *store, pid_t pid, uint64_t return_address);

/*
 * Interns a callchain of user addresses, innermost first. The first is an instruction's address,
 * the others are return addresses, unless they are STACK_INTERRUPTED, the last perhaps a mark.
 * What is beyond STACK_MAX_FRAMES is dropped, and marked. Returns 0 or -ENOMEM.
 */
int stack_store_add_callchain(struct stack_store *store, pid_t pid, const uint64_t *addresses,
			      size_t nr, uint32_t *ret_id);

/*
 * Unwinds a dump by the modules' CFI and interns the result. A stack that can't be unwound to its
 * end is interned as far as it went, with a mark, and counted (stack_store_unwind_failures()).
 * Returns 0 or -ENOMEM.
 */
int stack_store_add_dump(struct stack_store *store, pid_t pid, const struct stack_dump *dump,
			 uint32_t *ret_id);

/* How far a dump could be unwound. Not whole and not truncated: lost. */
struct stack_end {
	bool is_whole;
	bool is_truncated;     /* the dump ended before the stack did */
	size_t nr_interrupted; /* addresses that are STACK_INTERRUPTED */
	/*
	 * An address. Truncated: the dump should have gone at least so far. Else: what was needed
	 * of the stack lies below. 0: not known.
	 */
	uint64_t top;
};

/*
 * Unwinds a dump without interning it, for those who write callchains: *@ret_addresses are at most
 * STACK_MAX_FRAMES addresses, innermost first (dump->returned_from in front, where it is set), as
 * stack_store_add_callchain() takes them, until the next dump. Counts as stack_store_add_dump()
 * does. Returns 0 or -ENOMEM.
 */
int stack_store_unwind_dump(struct stack_store *store, pid_t pid, const struct stack_dump *dump,
			    const uint64_t **ret_addresses, size_t *ret_nr,
			    struct stack_end *ret_end);

/*
 * Begins to read, in a thread, what names the stacks interned so far, if names are expected. What
 * is named next waits for the file that is being read then. Returns 0 or -ENOMEM.
 */
int stack_store_begin_naming(struct stack_store *store);

size_t stack_store_nr_frames(const struct stack_store *store, uint32_t id);
/*
 * Names frame @index (0: innermost) of stack @id: as several frames, innermost first, where
 * functions were inlined; only the last is not marked so. *@ret is valid until the next call.
 * Returns 0, -ENOMEM, or -EINVAL: there is no such frame.
 */
int stack_store_frames(struct stack_store *store, uint32_t id, size_t index,
		       const struct stack_frame **ret, size_t *ret_nr);
/* The last of these: the function that the code is, whatever was inlined into it. */
int stack_store_frame(struct stack_store *store, uint32_t id, size_t index,
		      struct stack_frame *ret);

/* The dumps that were not unwound to their stack's end: truncated or lost. */
uint64_t stack_store_unwind_failures(const struct stack_store *store);
/* Valid as long as the store. */
const struct stack_unwind_stats *stack_store_unwind_stats(const struct stack_store *store);

#endif
