/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Stacks: turns callchains or dumps into interned ids, and ids into function, file:line and module.
 *
 * The store wants the processes' mapping events in time order. Interning a stack resolves its
 * addresses to module + offset by the mappings of that moment. Names are looked up only when asked
 * for, each address once.
 *
 * All input is hostile: addresses, sizes and names may be anything.
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
 * Where to look for a module's file: at SYMFS/path, at its path, and at its path in the root of a
 * process that mapped it. If a build-id was recorded, the file must have it.
 */
struct stack_store_options {
	const char *symfs;     /* prefix to every module's path; NULL: none */
	const char *debug_dir; /* of separate debug files, before /usr/lib/debug; NULL: none */
	bool ask_servers;      /* for names, if DEBUGINFOD_URLS is set; may take minutes */
	bool expect_names;     /* stacks will be named, so stack_store_begin_naming() pays */
	bool own_vdso;	       /* the processes run on this machine, so "[vdso]" is our own */
	bool limit_time;       /* to unwind with the files of one user: owner_time.h */
};

int stack_store_create(const struct stack_store_options *options, struct stack_store **ret);
void stack_store_destroy(struct stack_store *store);

/*
 * Events of the processes' address spaces, in time order. @pid is the process (thread group). A
 * fork whose child is its parent is a new thread and changes nothing. A mapping without a file
 * ("//anon", "[heap]") only displaces others. An exited process keeps its mappings for a while,
 * because its last threads may outlive the first. Return 0 or -ENOMEM.
 */
int stack_store_map(struct stack_store *store, const struct stack_mapping *mapping);
int stack_store_fork(struct stack_store *store, pid_t child, pid_t parent);
void stack_store_exec(struct stack_store *store, pid_t pid); /* forgets its mappings */
void stack_store_exit(struct stack_store *store, pid_t pid);

/*
 * Sets a build-id from the file's BUILD_ID feature, for modules whose mappings have none. Returns 0
 * or -ENOMEM.
 */
int stack_store_set_build_id(struct stack_store *store, const char *path, const uint8_t *build_id,
			     uint8_t size);

/*
 * This bit of an address in a chain, which no user address has, marks an interrupted instruction,
 * by a signal for instance: it is not a return address, though another frame is inside it.
 */
#define STACK_INTERRUPTED (1ULL << 63)

/*
 * Stores the recording's own name for the byte at @file_offset of the file at @path (mapped without
 * a build-id): @function_offset bytes into @function. It is used where we find no name. Returns 0
 * or -ENOMEM.
 */
int stack_store_name_place(struct stack_store *store, const char *path, uint64_t file_offset,
			   const char *function, uint64_t function_offset);

/* True if a known file is mapped where the call before @return_address would be. */
bool stack_store_is_code(struct stack_store *store, pid_t pid, uint64_t return_address);

/*
 * Interns a callchain of user addresses, innermost first. The first address is an instruction's,
 * the others are return addresses or STACK_INTERRUPTED; the last may be a mark. A longer chain than
 * STACK_MAX_FRAMES is cut and marked. Returns 0 or -ENOMEM.
 */
int stack_store_add_callchain(struct stack_store *store, pid_t pid, const uint64_t *addresses,
			      size_t nr, uint32_t *ret_id);

/*
 * Unwinds a dump by the modules' CFI and interns the result. A stack that does not reach its end is
 * interned with a mark and counted (stack_store_unwind_failures()). Returns 0 or -ENOMEM.
 */
int stack_store_add_dump(struct stack_store *store, pid_t pid, const struct stack_dump *dump,
			 uint32_t *ret_id);

/* How unwinding a dump ended. Neither whole nor truncated: lost. */
struct stack_end {
	bool is_whole;
	bool is_truncated;     /* the dump ended before the stack did */
	bool is_elsewhere;     /* whole, and goes on on another stack */
	size_t nr_interrupted; /* number of STACK_INTERRUPTED addresses */
	/*
	 * An address. Truncated: the dump should have reached it. Otherwise: the needed part of the
	 * stack lies below it. 0: not known.
	 */
	uint64_t top;
};

/*
 * Unwinds a dump without interning it. *@ret_addresses are at most STACK_MAX_FRAMES addresses,
 * innermost first (dump->returned_from in front, if it is set), as stack_store_add_callchain()
 * takes them; valid until the next dump. Counts as stack_store_add_dump() does. Returns 0 or
 * -ENOMEM.
 */
int stack_store_unwind_dump(struct stack_store *store, pid_t pid, const struct stack_dump *dump,
			    const uint64_t **ret_addresses, size_t *ret_nr,
			    struct stack_end *ret_end);

/*
 * Starts a thread that reads the names of the stacks interned so far, if names are expected. The
 * next naming waits for the file being read. Returns 0 or -ENOMEM.
 */
int stack_store_begin_naming(struct stack_store *store);

size_t stack_store_nr_frames(const struct stack_store *store, uint32_t id);

/* True if a frame of stack @id is the call that is the outermost frame of stack @call_id. */
bool stack_store_has_call(const struct stack_store *store, uint32_t id, uint32_t call_id);

/* Where a frame is. The pointers are valid as long as the store. */
struct stack_place {
	const char *path;	 /* of the file, as recorded; NULL: it is in no file */
	const uint8_t *build_id; /* of @build_id_size bytes; 0: none is known */
	size_t build_id_size;
	uint64_t file_offset; /* of a call: where it returns to */
};

/*
 * The place of frame @index (0: innermost) of stack @id. A mark is in no file, nor is code that the
 * kernel or the process itself has made. Returns 0, or -EINVAL if there is no such frame.
 */
int stack_store_place(const struct stack_store *store, uint32_t id, size_t index,
		      struct stack_place *ret);

/*
 * Names frame @index (0: innermost) of stack @id: as several frames, innermost first, if functions
 * were inlined. Only the last one is not marked as inlined. *@ret is valid until the next call.
 * Returns 0, -ENOMEM, or -EINVAL if there is no such frame.
 */
int stack_store_frames(struct stack_store *store, uint32_t id, size_t index,
		       const struct stack_frame **ret, size_t *ret_nr);
/* As stack_store_frames(), but returns only the last one: the function of the code itself. */
int stack_store_frame(struct stack_store *store, uint32_t id, size_t index,
		      struct stack_frame *ret);

/* The number of dumps that were truncated or lost. */
uint64_t stack_store_unwind_failures(const struct stack_store *store);
/* Valid as long as the store. */
const struct stack_unwind_stats *stack_store_unwind_stats(const struct stack_store *store);

#endif
